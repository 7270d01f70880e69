import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { within } from '@slipway/common/async.js';
import { Clock } from '../../../common/clock.js';
import { AgentServerClient, type AgentServerActivity } from '../../agent-servers/agent-server.client.js';
import { AgentServerError } from '../../agent-servers/agent-server.http.js';
import { RunningSandboxQueries } from '../sandbox.queries.js';
import type { Sandbox } from '../sandbox.entity.js';

/** A request this recent means that the user is working in the sandbox. */
const TRAFFIC_MS = 10_000;
/** While a command runs, an agent server reports an idle time of nearly 0. */
const BUSY_SECONDS = 0.1;
const PROBE_TIMEOUT_MS = 3_000;

/** Finds out whether sandboxes are idle. One whose state is unknown counts as busy. */
@Injectable()
export class IdlenessProbe {
  private readonly logger = new Logger(IdlenessProbe.name);

  constructor(
    private readonly client: AgentServerClient,
    private readonly sandboxes: RunningSandboxQueries,
    private readonly clock: Clock,
  ) {}

  async findIdle(sandboxes: readonly Sandbox[]): Promise<Sandbox[]> {
    const unused = sandboxes.filter((sandbox) => sandbox.status === 'RUNNING' && !this.isInUse(sandbox));
    const busy = await Promise.all(unused.map((sandbox) => this.isBusy(sandbox)));
    return unused
      .filter((_sandbox, index) => busy[index] === false)
      .toSorted((a, b) => idleSince(a) - idleSince(b) || a.createdAt.getTime() - b.createdAt.getTime());
  }

  /** What has just begun or ended looks busy for a moment, so the sandbox is asked again after it. */
  private async isBusy(sandbox: Sandbox): Promise<boolean> {
    const first = await this.activity(sandbox);
    // An unused agent server that has just started has a short idle time too, and needs no second look.
    if (first === null || first.running || first.isUnused || first.idleSeconds >= BUSY_SECONDS) {
      return first === null || first.running;
    }
    await delay(BUSY_SECONDS * 1000);
    const second = await this.activity(sandbox);
    return second === null || second.running || second.idleSeconds < BUSY_SECONDS;
  }

  async activity(sandbox: Sandbox): Promise<AgentServerActivity | null> {
    // Read again, since a sandbox of the list may have stopped meanwhile.
    const target = await this.sandboxes.target(sandbox.id);
    if (target === null) {
      return null;
    }
    try {
      return await within(PROBE_TIMEOUT_MS, this.client.activity(target));
    } catch (error) {
      if (error instanceof AgentServerError) {
        this.logger.debug('failed to read agent server activity', {
          sandbox_id: sandbox.id,
          error: error.message,
        });
        return null;
      }
      throw error;
    }
  }

  async isAlive({ address }: Sandbox): Promise<boolean> {
    return address !== null && (await this.client.isAlive(address));
  }

  /** Whether it is kept alive or its user works in it, whatever its agent server says. */
  isInUse({ keepAliveUntil, trafficAt }: Sandbox): boolean {
    const now = this.clock.now();
    return (keepAliveUntil?.getTime() ?? 0) > now || (trafficAt?.getTime() ?? 0) > now - TRAFFIC_MS;
  }
}

function idleSince({ lastActivityAt }: Sandbox): number {
  return lastActivityAt.getTime();
}
