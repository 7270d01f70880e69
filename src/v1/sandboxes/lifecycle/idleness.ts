import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../../common/clock.js';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import { AgentServerClient, type AgentServerActivity } from '../../agent-servers/agent-server.client.js';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import { sessionKeyBinding } from '../session-key.js';
import type { Sandbox } from '../sandbox.entity.js';

/** A user whose last request was so recent is using the sandbox. */
const TRAFFIC_MS = 10_000;
/** While a command runs in it, an agent server says that it has been idle for no time at all. */
const BUSY_SECONDS = 0.1;
/** An agent server that answers nothing in this time may be busy. */
const ANSWER_MS = 3_000;

/** Says whether anything goes on in sandboxes. What cannot be known counts as going on. */
@Injectable()
export class SandboxIdleness {
  private readonly logger = new Logger(SandboxIdleness.name);

  constructor(
    private readonly client: AgentServerClient,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
  ) {}

  /** Those in which nothing goes on, the longest idle first. */
  async idle(sandboxes: readonly Sandbox[]): Promise<Sandbox[]> {
    const quiet = sandboxes.filter((sandbox) => sandbox.status === 'RUNNING' && !this.isUsed(sandbox));
    const busy = await Promise.all(
      quiet.map(async (sandbox) => {
        const activity = await this.activity(sandbox);
        return activity === null || activity.running || activity.idleSeconds < BUSY_SECONDS;
      }),
    );
    return quiet
      .filter((_sandbox, index) => busy[index] === false)
      .toSorted((a, b) => idleSince(a) - idleSince(b) || a.createdAt.getTime() - b.createdAt.getTime());
  }

  /** What the agent server says; null when it does not (in time). */
  async activity(sandbox: Sandbox): Promise<AgentServerActivity | null> {
    if (sandbox.address === null) {
      return null;
    }
    const sessionKey = this.cipher.decrypt(sandbox.sessionKey, sessionKeyBinding(sandbox.id));
    const giveUp = new AbortController();
    try {
      return await Promise.race([
        this.client.activity({ address: sandbox.address, sessionKey }),
        delay(ANSWER_MS, null, { signal: giveUp.signal, ref: false }),
      ]);
    } catch (error) {
      if (error instanceof AgentServerError) {
        this.logger.debug('an agent server did not say what it does', {
          sandbox_id: sandbox.id,
          error: error.message,
        });
        return null;
      }
      throw error;
    } finally {
      giveUp.abort();
    }
  }

  /** Whether the agent server answers anything at all. */
  async answers({ address }: Sandbox): Promise<boolean> {
    return address !== null && (await this.client.isAlive(address));
  }

  /** Somebody needs it right now, whatever its agent server says. */
  isUsed({ heldUntil, trafficAt }: Sandbox): boolean {
    const now = this.clock.now();
    return (heldUntil?.getTime() ?? 0) > now || (trafficAt?.getTime() ?? 0) > now - TRAFFIC_MS;
  }
}

function idleSince({ lastActivityAt }: Sandbox): number {
  return lastActivityAt.getTime();
}
