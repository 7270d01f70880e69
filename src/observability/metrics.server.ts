import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { AllowedHosts } from '@slipway/common/requests/allowed-hosts.js';
import { AppConfig } from '../config/app-config.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { Metrics } from '@slipway/telemetry/metrics.js';

/** Serves `GET /metrics` without a key, on its own port. */
@Injectable()
export class MetricsServer implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('Metrics');
  private server: Server | null = null;

  constructor(
    private readonly config: AppConfig,
    private readonly metrics: Metrics,
  ) {}

  get port(): number | null {
    const address = this.server?.address();
    return typeof address === 'object' && address !== null ? address.port : null;
  }

  async onApplicationBootstrap(): Promise<void> {
    const { metricsHost: host, metricsPort, allowedHosts } = this.config.http;
    if (metricsPort === null) {
      return;
    }
    this.metrics.addProcessMetrics();
    const hosts = new AllowedHosts({ listenHost: host, configured: allowedHosts });
    const server = createServer((request, response) => {
      if (hosts.accepts(request)) {
        void this.respond(request, response);
      } else {
        response
          .writeHead(421, { 'Content-Type': 'text/plain' })
          .end('Metrics are not read under this host name; add it to ALLOWED_HOSTS.\n');
      }
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) =>
        reject(new ConfigError(`METRICS_PORT: ${error.message}`, { cause: error })),
      );
      server.listen(metricsPort, host, resolve);
    });
    this.server = server;
    this.logger.log('metrics server started', { host, port: this.port });
  }

  async onApplicationShutdown(): Promise<void> {
    const { server } = this;
    if (server === null) {
      return;
    }
    server.closeAllConnections();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  }

  private async respond({ method, url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
    if ((method !== 'GET' && method !== 'HEAD') || url.replace(/\?.*$/, '') !== '/metrics') {
      response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Metrics are at GET /metrics.\n');
      return;
    }
    try {
      const text = await this.metrics.text();
      response.writeHead(200, { 'Content-Type': this.metrics.contentType }).end(text);
    } catch (error) {
      this.logger.error('failed to collect metrics', errorStack(error));
      response
        .writeHead(500, { 'Content-Type': 'text/plain' })
        .end('Failed to collect metrics; see the log.\n');
    }
  }
}
