import { setTimeout as wait } from 'node:timers/promises';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { messageNumber, StreamFollower } from '../../rolling/event-followers.js';
import { LoadClient } from '../../rolling/load-client.js';
import { Tally } from '../../rolling/tally.js';
import { type ApiClient, idsOf, type Started, text } from '../../system/journeys/support/api-client.js';
import { outcomeWithout, type Outcome } from '../scenario.js';
import type { ChaosWorld } from './chaos-world.js';

const PAUSE_MS = 20;
const CATCH_UP_MS = 160_000;

/** A conversation that gets a message every moment while its agent server is damaged, and a client that follows it. */
export class MessagesUnderFault {
  readonly #world: ChaosWorld;
  readonly #user: ApiClient;
  readonly #started: Started;
  readonly #acknowledged: number[] = [];
  #isOver = false;

  private constructor(world: ChaosWorld, user: ApiClient, started: Started) {
    this.#world = world;
    this.#user = user;
    this.#started = started;
  }

  static async start(world: ChaosWorld): Promise<MessagesUnderFault> {
    const user = await world.journey.createUser();
    return new MessagesUnderFault(world, user, await user.started({}));
  }

  get sandboxId(): string {
    return this.#started.sandboxId;
  }

  /** Kills everything that runs in the sandbox, and waits until the service has noticed. */
  async killSandbox(): Promise<void> {
    for (const pid of this.#world.journey.sandboxProcesses(this.sandboxId)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It went with its parent.
      }
    }
    await this.#user.sandboxIn(this.sandboxId, 'ERROR');
  }

  async resumeSandbox(): Promise<void> {
    await this.#user.post(`/api/v1/sandboxes/${this.sandboxId}/resume`);
    await this.#user.sandboxIn(this.sandboxId, 'RUNNING');
  }

  /** Sends messages while the damage is done, and compares what was acknowledged with the log, the store and the stream. */
  async during(faults: number, damage: () => Promise<void>): Promise<Outcome> {
    const client = new LoadClient(this.#world.url, this.#user.key, new Tally());
    const follower = new StreamFollower(client, this.#started.id);
    const following = follower.run();
    const sending = this.#send();
    try {
      await damage();
    } finally {
      this.#isOver = true;
      await sending;
    }
    const deadline = performance.now() + CATCH_UP_MS;
    let stored = await this.#user.events(this.#started.id);
    const log = await this.#log();
    while (
      (stored.length < log.length || follower.numbers.length < numbersOf(stored).length) &&
      performance.now() < deadline
    ) {
      await wait(PAUSE_MS);
      stored = await this.#user.events(this.#started.id);
    }
    follower.stop();
    await following;
    client.close();
    return this.#compare(faults, stored, log, follower);
  }

  #compare(faults: number, stored: unknown[], log: unknown[], follower: StreamFollower): Outcome {
    const numbers = numbersOf(stored);
    const lost = this.#acknowledged.filter((number) => !numbers.includes(number)).length;
    const missed = numbers.filter((number) => !follower.numbers.includes(number)).length;
    const doubled = numbers.length - new Set(numbers).size + follower.doubled;
    const problems = [
      lost > 0 ? `${lost} acknowledged messages are not stored` : null,
      missed + follower.gaps > 0
        ? `the stream has missed ${missed} messages, with ${follower.gaps} gaps`
        : null,
      doubled > 0 ? `${doubled} messages came twice` : null,
      idsOf(stored).join() === idsOf(log).join() ? null : 'the store and the log of the agent server differ',
    ].filter((problem) => problem !== null);
    const counts = { acknowledged: this.#acknowledged.length, lost: lost + missed, doubled };
    return outcomeWithout(faults, counts, problems, [
      `events ${stored.length}, connects ${follower.connects}`,
    ]);
  }

  async #send(): Promise<void> {
    for (let number = 1; !this.#isOver; number += 1) {
      const content = [{ type: 'text', text: `load ${number}` }];
      const path = `/api/conversations/${this.#started.id}/events`;
      try {
        await this.#user.agentServer(this.sandboxId, 'POST', path, { role: 'user', content, run: false });
        this.#acknowledged.push(number);
      } catch {
        // The agent server is away: no client was told that the message has arrived.
      }
      await wait(PAUSE_MS);
    }
  }

  /** Of the agent server itself. */
  async #log(): Promise<unknown[]> {
    const found: unknown[] = [];
    let page: string | null = null;
    do {
      const query: string = page === null ? '' : `&page_id=${encodeURIComponent(page)}`;
      const path = `/api/conversations/${text(this.#started, 'id')}/events/search?limit=100${query}`;
      const answer = await this.#user.agentServer(this.sandboxId, 'GET', path);
      found.push(...jsonList(answer, 'items'));
      page = jsonText(answer, 'next_page_id');
    } while (page !== null);
    return found;
  }
}

function numbersOf(events: unknown[]): number[] {
  return events.map((event) => messageNumber(event)).filter((number) => number !== null);
}
