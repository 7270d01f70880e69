import { Agent, type ClientRequestArgs } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { callbackify } from 'node:util';
import { inTime } from '@slipway/common/async.js';
import { type Dialer, hostUnreachable } from './dialer.js';
import type { EgressPolicy } from './protocol.js';
import type { Target } from './target.js';

const HANDSHAKE_MS = 20_000;
/** Shorter than servers keep connections, so that a request does not meet one that is closed at this moment. */
const REUSE_MS = 4_000;

export interface UpstreamRequest extends ClientRequestArgs {
  target: Target;
  policy: EgressPolicy;
}

/**
 * The connections to hosts of one connection of a sandbox; they end with it. Each is dialled by the rules at that time, and carries one
 * request at a time.
 */
export class UpstreamAgent extends Agent {
  private isClosed = false;

  constructor(
    private readonly dialer: Dialer,
    private readonly ca: readonly string[] | undefined,
  ) {
    super({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1, timeout: REUSE_MS });
  }

  override createConnection(
    { target, policy }: ClientRequestArgs & Partial<UpstreamRequest>,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    if (target === undefined || policy === undefined || callback === undefined) {
      throw new Error('the target of a request is missing');
    }
    const connect = callbackify(() => this.connect(target, policy));
    connect((error, socket) => callback(error, socket));
    return undefined;
  }

  /** By which kept connections are found: one without TLS must not carry what is meant for TLS, at the same port. */
  override getName(options?: Partial<UpstreamRequest>): string {
    return `${super.getName(options)}${options?.target?.isTls ? 'tls' : ''}`;
  }

  override destroy(): void {
    this.isClosed = true;
    super.destroy();
  }

  private async connect(target: Target, policy: EgressPolicy): Promise<Socket> {
    try {
      if (this.isClosed) {
        throw new Error('the connection of the sandbox has ended');
      }
      const plain = await this.dialer.dial(policy, target);
      const socket = target.isTls ? await this.handshake(plain, target) : plain;
      if (this.isClosed) {
        socket.destroy();
      }
      return socket;
    } catch (error) {
      throw hostUnreachable(target, error);
    }
  }

  private async handshake(socket: Socket, target: Target): Promise<TLSSocket> {
    const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
    const secure = connectTls({
      socket,
      host: target.host,
      ...(!target.isAddress && { servername: target.host }),
      ALPNProtocols: ['http/1.1'],
      ...(this.ca && { ca: [...this.ca] }),
    });
    secure.once('secureConnect', () => resolve(secure)).once('error', reject);
    try {
      return await inTime(HANDSHAKE_MS, promise, () => new Error('no TLS handshake in time'));
    } catch (error) {
      secure.destroy();
      socket.destroy();
      throw error;
    } finally {
      secure.off('error', reject);
    }
  }
}
