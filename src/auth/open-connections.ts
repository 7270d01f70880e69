import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../common/background-loop.js';
import { AccessChanges } from './access-changes.js';
import { RequestAuthenticator } from './request-authenticator.js';
import { UserRepository } from './user.repository.js';

/** Finds what has ended by itself, such as a key that expired, and what a lost notification told of. */
const EVERY_MS = 5_000;
/** An answer that has not begun is not cut, as it may be about the end itself. */
const BEGUN_MS = 100;

interface Holder {
  userId: string;
  /** Null: what it shows is the user's, but no key of theirs came with it. */
  keyId: string | null;
}

/** Answers and sockets that may outlast the check of who asked: they end when that would be refused now. */
@Injectable()
export class OpenConnections extends BackgroundLoop {
  private readonly open = new Map<Writable, Holder>();

  constructor(
    changes: AccessChanges,
    private readonly authenticator: RequestAuthenticator,
    private readonly users: UserRepository,
  ) {
    super(EVERY_MS, new Logger('Access'), 'failed to check open connections', 'warn');
    changes.listen((userId) => {
      const check = this.check(userId).catch((error: unknown) => {
        this.logger.warn('failed to check open connections', { error: errorMessage(error) });
      });
      this.beside(check);
    });
  }

  add(client: Writable, holder: Holder): void {
    this.open.set(client, holder);
    // What pipes into it needs nearly all that Node.js takes for no leak.
    client.setMaxListeners(client.getMaxListeners() + 1);
    client.once('close', () => this.open.delete(client));
  }

  protected async work(): Promise<void> {
    await this.check(null);
  }

  /** @param userId null: of all */
  private async check(userId: string | null): Promise<void> {
    const held = [...this.open].filter(([, holder]) => userId === null || holder.userId === userId);
    if (held.length === 0) {
      return;
    }
    const keyIds = new Set(held.flatMap(([, { keyId }]) => keyId ?? []));
    const userIds = new Set(held.flatMap(([, holder]) => (holder.keyId === null ? holder.userId : [])));
    const [valid, acting] = await Promise.all([
      this.authenticator.stillValid([...keyIds]),
      this.users.acting([...userIds]),
    ]);
    for (const [client, holder] of held) {
      if (holder.keyId === null ? !acting.has(holder.userId) : !valid.has(holder.keyId)) {
        this.end(client);
      }
    }
  }

  private end(client: Writable): void {
    if (!isAnswer(client) || client.headersSent) {
      if (!client.writableEnded) {
        client.destroy();
      }
    } else if (this.open.has(client)) {
      setTimeout(() => this.end(client), BEGUN_MS).unref();
    }
  }
}

function isAnswer(client: Writable): client is ServerResponse {
  return 'headersSent' in client;
}
