import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { ExposedPortRepository } from '../sandboxes/exposed-port.repository.js';
import { SandboxKeyQueries } from '../sandboxes/sandbox-key.guard.js';
import { SandboxUrls } from '../sandboxes/sandbox-urls.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { isKeyOfHash } from '../sandboxes/session-key.js';
import { AgentServerTargets, type ConnectedSandbox } from './agent-server.targets.js';
import type { CloudProxyDto } from './cloud-proxy.controller.js';
import { SandboxForwarder } from './sandbox-forwarder.js';

/** All others, such as the user's API key, are meant for the service. */
const KEPT_REQUEST_HEADERS = new Set(['host', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host']);
const KEPT_RESPONSE_HEADERS = new Set(['content-length', 'content-encoding']);
const JSON_TYPE = 'application/json';
const ANY_TYPE = 'application/octet-stream';

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
}

/** Forwards the request in the body of another request, but only to a sandbox of its sender. */
@Injectable()
export class CloudProxyService {
  private readonly forwarder = new SandboxForwarder('The agent server of the sandbox did not answer.');

  constructor(
    private readonly keys: SandboxKeyQueries,
    private readonly targets: AgentServerTargets,
    private readonly ports: ExposedPortRepository,
    private readonly urls: SandboxUrls,
    private readonly sandboxes: SandboxRepository,
  ) {}

  /** Resolves after the response. Throws DomainError not_found without such a sandbox of this user; bad_gateway. */
  async forward(userId: string, call: CloudProxyDto, { request, response }: Exchange): Promise<void> {
    const { host, method, path, headers: sent, body = null } = call;
    const key = sent['X-Session-API-Key'];
    const { sandbox, connections } = await this.find(userId, host, key);
    if (method !== 'GET') {
      response.once('finish', () => {
        if (response.statusCode < 400) {
          this.sandboxes.touch(sandbox.sandboxId);
        }
      });
    }
    await this.forwarder.forwardRequest(request, response, {
      target: sandbox.address,
      connections,
      path,
      isProven: true,
      inner: { method, body: body === null ? '' : JSON.stringify(body) },
      rewriteRequestHeaders: (headers) => {
        keep(headers, KEPT_REQUEST_HEADERS);
        headers['accept'] = '*/*';
        headers['x-session-api-key'] = key;
        if (body !== null) {
          headers['content-type'] = JSON_TYPE;
        }
      },
      rewriteResponseHeaders: (headers) => {
        const isJson = String(headers['content-type']).startsWith(JSON_TYPE);
        keep(headers, KEPT_RESPONSE_HEADERS);
        // Browsers must not render sandbox content as a page on the service's own origin.
        headers['content-type'] = isJson ? JSON_TYPE : ANY_TYPE;
      },
    });
  }

  private async find(userId: string, host: string, key: string): Promise<ConnectedSandbox> {
    const holder = await this.keys.find(key);
    const found = holder?.userId === userId ? await this.targets.findAnew(holder.sandboxId) : null;
    if (found === null || !isKeyOfHash(key, found.keyHash) || !(await this.isAt(host, found))) {
      throw noSuchSandbox();
    }
    return found;
  }

  private async isAt(host: string, { sandbox: { sandboxId } }: ConnectedSandbox): Promise<boolean> {
    const exposed = await this.ports.find(sandboxId);
    const url = this.urls.agentServer(sandboxId, exposed?.port ?? null);
    return new URL(url).origin === new URL(host).origin;
  }
}

function keep(headers: OutgoingHttpHeaders, names: ReadonlySet<string>): void {
  for (const name of Object.keys(headers)) {
    if (!names.has(name)) {
      delete headers[name];
    }
  }
}

export function noSuchSandbox(): DomainError {
  const detail =
    'No running sandbox of yours has this address and this key. If it is paused, resume it: POST /api/v1/sandboxes/{id}/resume; its key is another one afterwards.';
  return new DomainError('not_found', 'sandbox_not_running', detail);
}
