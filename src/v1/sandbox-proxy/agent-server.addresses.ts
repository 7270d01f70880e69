import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import { SandboxUrls } from '../sandboxes/sandbox-urls.js';
import { AgentServerPorts } from './agent-server.ports.js';

const PREFIX = /^\/api\/v1\/sandboxes\/([0-9A-Za-z]{1,64})\/agent-server(?=[/?]|$)/;

export interface AgentServerAddress {
  sandboxId: string;
  /** Path and query as the agent server gets them. */
  rest: string;
  isOwn: boolean;
}

type Addressed = Pick<IncomingMessage, 'url' | 'headers' | 'socket'>;

/** Recognizes requests for agent servers by the port they arrive at, by their host name, or by their path. */
@Injectable()
export class AgentServerAddresses {
  constructor(
    private readonly ports: AgentServerPorts,
    private readonly urls: SandboxUrls,
  ) {}

  /** Null for the service or another port. All that arrives at an agent server's own port or host name is for it. */
  find(request: Addressed): AgentServerAddress | null {
    const { url = '/', headers } = request;
    const sandboxId = this.ports.sandboxOf(request) ?? this.urls.agentServerAt(headers.host);
    if (sandboxId !== null) {
      return { sandboxId, rest: url.startsWith('/') ? url : '/', isOwn: true };
    }
    return this.urls.isPortHost(headers.host) ? null : agentServerPath(url);
  }
}

/** Null for a path that is not below an agent server's. */
export function agentServerPath(url: string): AgentServerAddress | null {
  const [prefix, sandboxId] = PREFIX.exec(url) ?? [];
  if (prefix === undefined || sandboxId === undefined) {
    return null;
  }
  const rest = url.slice(prefix.length);
  return { sandboxId, rest: rest.startsWith('/') ? rest : `/${rest}`, isOwn: false };
}
