import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { type Middleware, runMiddleware } from '../../common/requests/middleware.js';
import type { AgentServerAddress } from './agent-server.addresses.js';
import type { AgentServerProxy } from './agent-server.proxy.js';

interface EntranceOptions {
  proxy: AgentServerProxy;
  /** What every request goes through first. */
  steps: readonly Middleware[];
  /** Responds to a request that failed. */
  refuse: (error: unknown, request: IncomingMessage, response: ServerResponse) => void;
}

/**
 * Takes requests for agent servers before Express does, which would take longer over them than the proxy itself. Those of
 * pages from elsewhere, and the questions that browsers ask before them, are left to it: they need the rules for origins.
 */
export class AgentServerEntrance {
  constructor(private readonly options: EntranceOptions) {}

  /** @param framework the listener that gets all other requests */
  attach(server: Server, framework: RequestListener): void {
    server.off('request', framework);
    server.on('request', (request, response) => {
      if (!this.take(request, response)) {
        framework(request, response);
      }
    });
  }

  private take(request: IncomingMessage, response: ServerResponse): boolean {
    const { proxy, steps, refuse } = this.options;
    if (request.headers.origin !== undefined || request.method === 'OPTIONS') {
      return false;
    }
    const address = proxy.addressOf(request);
    if (address === null) {
      return false;
    }
    runMiddleware(steps, request, response, (error) => {
      if (error === undefined) {
        void this.forward(request, response, address);
      } else {
        refuse(error, request, response);
      }
    });
    return true;
  }

  private async forward(
    request: IncomingMessage,
    response: ServerResponse,
    address: AgentServerAddress,
  ): Promise<void> {
    try {
      await this.options.proxy.forward(request, response, address);
    } catch (error) {
      this.options.refuse(error, request, response);
    }
  }
}
