import { Injectable } from '@nestjs/common';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { AppConfig } from '../../../config/app-config.js';
import { ServiceAddress } from '../../../config/service-address.js';
import type { ClearMcpConfig } from '../../../settings/mcp/mcp-secrets.js';
import { SandboxCallback } from '../../sandboxes/sandbox-callback.js';

export const TOOL_SERVER_PATH = '/mcp';

/** Names the conversation whose agent calls our own tool server. */
export const CONVERSATION_HEADER = 'X-Slipway-Conversation';

/**
 * Lets an agent that calls our own tool server say which conversation it works in. It holds the user's key, with which it
 * could start conversations without a parent anyway, so the header needs no signature.
 */
@Injectable()
export class OwnToolServer {
  constructor(
    private readonly address: ServiceAddress,
    private readonly callback: SandboxCallback,
    private readonly config: AppConfig,
  ) {}

  /** Adds the header to the servers that are ours, and to no others. */
  calledFrom(conversationId: string, config: ClearMcpConfig | null): ClearMcpConfig | null {
    return (
      config && {
        ...config,
        shttpServers: config.shttpServers.map((server) => {
          const { details = {}, url } = server;
          const headers = { ...Object(details['headers']), [CONVERSATION_HEADER]: conversationId };
          return this.isOwn(url) ? { ...server, details: { ...details, headers } } : server;
        }),
      }
    );
  }

  private isOwn(text: string): boolean {
    const url = URL.parse(text);
    if (url?.pathname.replace(/\/$/, '') !== TOOL_SERVER_PATH) {
      return false;
    }
    const { hostname, origin, port } = url;
    return (
      this.address.isOwn(origin) ||
      origin === new URL(this.callback.webhooksUrl).origin ||
      this.config.http.allowedHosts.includes(hostname) ||
      (isLoopbackHost(hostname) && port === String(this.address.port))
    );
  }
}
