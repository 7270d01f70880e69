import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request } from 'express';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { AppConfig } from './app-config.js';

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/** The port is that of the open listener, so `PORT=0` works too. */
@Injectable()
export class ServiceAddress {
  private boundPort: number | null = null;

  constructor(
    private readonly adapters: HttpAdapterHost,
    private readonly config: AppConfig,
  ) {}

  /** `PUBLIC_URL`, else `http://localhost:PORT`, without a trailing slash. */
  get publicUrl(): string {
    return this.config.http.publicUrl ?? `http://localhost:${this.port}`;
  }

  /** The path of `publicUrl`, before every path of the service in a browser: `/slipway`, or empty. */
  get pathPrefix(): string {
    return new URL(this.publicUrl).pathname.replace(/\/$/, '');
  }

  /** The same as the client of a request reaches it: its `Host` has been checked against `ALLOWED_HOSTS`. */
  urlFor({ headers: { host }, secure }: Request): string {
    return this.config.http.publicUrl === null && host !== undefined
      ? `${secure ? 'https' : 'http'}://${host.toLowerCase()}`
      : this.publicUrl;
  }

  /** Whether clients reach the service by https, as `PUBLIC_URL` or a trusted proxy says. */
  isHttps({ secure }: Pick<Request, 'secure'>): boolean {
    return secure || this.publicUrl.startsWith('https:');
  }

  /**
   * Whether an origin is `publicUrl`, or on a local machine another name of it. Without `PUBLIC_URL`, the host that
   * the request is for counts too, which has been checked against `ALLOWED_HOSTS`.
   */
  isOwn(origin: string, requestedHost?: string): boolean {
    const own = new URL(this.publicUrl);
    if (this.config.http.publicUrl === null && requestedHost !== undefined) {
      const host = requestedHost.toLowerCase();
      if (origin === `http://${host}` || origin === `https://${host}`) {
        return true;
      }
    }
    if (!isLoopbackHost(own.hostname)) {
      return origin === own.origin;
    }
    return LOCAL_NAMES.some((name) => {
      own.hostname = name;
      return origin === own.origin;
    });
  }

  /** The bound port; before that the configured one. */
  get port(): number {
    // The operating system is asked only once: lists have an address in every item.
    this.boundPort ??= this.findBoundPort();
    return this.boundPort ?? this.config.http.port;
  }

  private findBoundPort(): number | null {
    const address: unknown = this.adapters.httpAdapter.getHttpServer().address();
    return typeof address === 'object' && address !== null && 'port' in address ? Number(address.port) : null;
  }
}
