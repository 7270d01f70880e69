import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { messageNumber, SocketFollower, StreamFollower } from './event-followers.js';
import { KeptSecrets } from './kept-secrets.js';
import { LoadClient } from './load-client.js';
import type { Tally } from './tally.js';

const STREAMS = 3;
const SOCKETS = 2;
/** Pauses between two requests of one kind, milliseconds: enough load that every moment of a restart is hit. */
const PAUSE_MS = {
  settings: 40,
  secrets: 80,
  tasks: 60,
  lists: 100,
  messages: 50,
  polls: 100,
  starts: 1_000,
};
/** Every so many starts one has a sandbox of its own. */
const OWN_SANDBOX_EVERY = 3;
const START_TIMEOUT_MS = 300_000;
/** How long the last events may take to arrive: a killed replica's leases end first. */
const CATCH_UP_MS = 160_000;

export interface LoadOptions {
  /** The address of the balancer, or of the service in a cluster. */
  url: string;
  /** Of an administrator, who makes a user for the load. */
  adminKey: string;
  /** What the settings of that user say, so that conversations may start. No model is called. */
  settings: object;
  /** A token of GitHub, for suggested tasks; null: there are none. */
  gitToken: string | null;
  /** How often a start is sent whose answers were lost, under one key; twice unless it says so. */
  startTries?: number;
  /** How many starts are under way at a time; one unless it says so. */
  starters?: number;
}

/** What the load has found. */
export interface Findings {
  /** Sentences; none when everything was as it should be. */
  problems: string[];
  lines: string[];
  counts: LoadCounts;
}

export interface LoadCounts {
  /** Writes that the service said it had done: settings, secrets, messages, starts. */
  acknowledged: number;
  /** Those that are not there afterwards, and events that a follower never got. */
  lost: number;
  /** Events that a follower got twice or that are stored twice, and conversations that were never started. */
  doubled: number;
  /** Starts that did not become READY. */
  stuck: number;
}

/** The load: settings, suggested tasks, lists, starts of conversations, messages, and streams of what comes of them. */
export class Load {
  readonly #client: LoadClient;
  readonly #admin: LoadClient;
  readonly #userId: string;
  readonly #sandbox: { id: string; key: string };
  readonly #conversationId: string;
  readonly #streams: StreamFollower[];
  readonly #sockets: SocketFollower[];
  readonly #sent: number[] = [];
  /** Messages whose request was lost with a replica: they may have arrived. */
  readonly #uncertain = new Set<number>();
  readonly #problems: string[] = [];
  readonly #startMs: number[] = [];
  readonly #secrets: KeptSecrets;
  readonly #startTries: number;
  readonly #starters: number;
  /** Starts whose answers were lost to the last: they may have happened. */
  #unknownStarts = 0;
  /** Of the starts, whether or not they have been removed again. */
  readonly #conversationIds: Set<string>;
  readonly #counts: LoadCounts = { acknowledged: 0, lost: 0, doubled: 0, stuck: 0 };
  #settingsTurn = 0;
  #isOver = false;

  private constructor(
    admin: LoadClient,
    client: LoadClient,
    user: { userId: string; sandbox: { id: string; key: string }; conversationId: string },
    { startTries, starters }: { startTries: number; starters: number },
  ) {
    this.#admin = admin;
    this.#client = client;
    this.#userId = user.userId;
    this.#sandbox = user.sandbox;
    this.#conversationId = user.conversationId;
    this.#conversationIds = new Set([user.conversationId]);
    this.#startTries = startTries;
    this.#starters = starters;
    this.#secrets = new KeptSecrets(client);
    this.#streams = Array.from({ length: STREAMS }, () => new StreamFollower(client, user.conversationId));
    this.#sockets = Array.from(
      { length: SOCKETS },
      () => new SocketFollower(client, user.sandbox, user.conversationId),
    );
  }

  /**
   * Makes the user, a sandbox and the conversation that is followed.
   *
   * @throws Error when one of them cannot be made
   */
  static async prepare(
    { url, adminKey, settings, gitToken, startTries = 2, starters = 1 }: LoadOptions,
    tally: Tally,
  ): Promise<Load> {
    const admin = new LoadClient(url, adminKey, tally);
    const email = `rolling-${randomUUID()}@example.com`;
    const userId = member(await admin.must('set-up', 'POST', '/api/v1/users', { body: { email } }), 'id');
    const issued = await admin.must('set-up', 'POST', '/api/v1/api-keys', {
      body: { name: 'rolling', user_id: userId },
    });
    const client = admin.as(member(issued, 'key'));
    await client.must('set-up', 'POST', '/api/settings', { body: settings });
    if (gitToken !== null) {
      const body = { provider_tokens: { github: { token: gitToken } } };
      await client.must('set-up', 'POST', '/api/add-git-providers', { body });
    }
    const task = await untilReady(client, await client.must('set-up', 'POST', START, { body: {} }));
    const sandboxId = member(task, 'sandbox_id');
    const [sandbox] = listOf(await client.must('set-up', 'GET', `/api/v1/sandboxes?id=${sandboxId}`));
    const user = {
      userId,
      sandbox: { id: sandboxId, key: member(sandbox, 'session_api_key') },
      conversationId: member(task, 'app_conversation_id'),
    };
    return new Load(admin, client, user, { startTries, starters });
  }

  /** Keeps everything busy until the work is done, and then waits until every client has got everything. */
  async during(work: () => Promise<void>): Promise<Findings> {
    const followers = [...this.#streams, ...this.#sockets];
    const following = followers.map((follower) => follower.run());
    const loops = [
      this.#repeat(PAUSE_MS.settings, (turn) => this.#changeSettings(turn)),
      this.#repeat(PAUSE_MS.secrets, (turn) => this.#secrets.change(turn)),
      this.#repeat(PAUSE_MS.tasks, () => this.#readTasks()),
      this.#repeat(PAUSE_MS.lists, () => this.#readLists()),
      this.#repeat(PAUSE_MS.messages, (turn) => this.#sendMessage(turn)),
      ...Array.from({ length: this.#starters }, (_, starter) =>
        this.#repeat(PAUSE_MS.starts, (turn) => this.#start(turn, starter)),
      ),
    ];
    try {
      await work();
    } finally {
      this.#isOver = true;
      await Promise.all(loops);
    }
    // After a kill another replica goes on reading the agent server's log when the lease of the dead one ends.
    const deadline = performance.now() + CATCH_UP_MS;
    let stored = await this.#stored();
    while (
      (missing(this.#sent, stored) > 0 || followers.some(({ numbers }) => numbers.length < stored.length)) &&
      performance.now() < deadline
    ) {
      await wait(PAUSE_MS.polls);
      stored = await this.#stored();
    }
    followers.forEach((follower) => follower.stop());
    await Promise.all(following);
    await this.#lookAtWrites();
    return this.#findings(await this.#stored());
  }

  /** Removes the user with everything that is theirs; sandboxes first, as only the sweep of a minute finds those without an owner. */
  async close(): Promise<void> {
    const path = '/api/v1/sandboxes';
    const deadline = performance.now() + CATCH_UP_MS;
    let left: unknown[];
    do {
      await wait(PAUSE_MS.polls);
      left = jsonList(await this.#client.must('set-up', 'GET', `${path}/search?limit=100`), 'items');
      for (const each of left.filter((sandbox) => jsonText(sandbox, 'status') !== 'DELETING')) {
        // Another replica may be just removing it.
        await this.#client.send('removals', 'DELETE', `${path}/${member(each, 'id')}`);
      }
    } while (left.length > 0 && performance.now() < deadline);
    await this.#admin.must('set-up', 'DELETE', `/api/v1/users/${this.#userId}`);
    this.#client.close();
    this.#admin.close();
  }

  async #repeat(pauseMs: number, once: (turn: number) => Promise<void>): Promise<void> {
    for (let turn = 1; !this.#isOver; turn += 1) {
      await once(turn);
      await wait(pauseMs);
    }
  }

  /** What one replica has stored, the next one shows. */
  async #changeSettings(turn: number): Promise<void> {
    const name = `Developer ${turn}`;
    const stored = await this.#client.send('settings', 'POST', '/api/settings', {
      body: { git_user_name: name },
    });
    if (!stored) {
      return;
    }
    this.#settingsTurn = turn;
    this.#counts.acknowledged += 1;
    const shown = await this.#client.send('settings', 'GET', '/api/settings');
    if (shown && jsonText(shown.body, 'git_user_name') !== name) {
      this.#counts.lost += 1;
      this.#problems.push(`settings were stored as "${name}" and read as ${JSON.stringify(shown.body)}`);
    }
  }

  /** What was acknowledged at any time is there in the end, and nothing that was not asked for. */
  async #lookAtWrites(): Promise<void> {
    const shown = jsonText(await this.#client.must('settings', 'GET', '/api/settings'), 'git_user_name');
    // A later write may have been done whose answer was lost.
    const lost = Number(/\d+$/.exec(shown ?? '')?.[0] ?? 0) < this.#settingsTurn ? ['the last settings'] : [];
    lost.push(...(await this.#secrets.lost()));
    const path = '/api/v1/app-conversations/search?limit=100';
    const left = jsonList(await this.#client.must('lists', 'GET', path), 'items');
    const strangers = left
      .filter((each) => !this.#conversationIds.has(member(each, 'id')))
      .slice(this.#unknownStarts);
    this.#counts.lost += lost.length;
    this.#counts.doubled += strangers.length;
    this.#problems.push(...lost.map((what) => `lost: ${what}`));
    this.#problems.push(...strangers.map((each) => `nobody has started conversation ${member(each, 'id')}`));
  }

  async #readTasks(): Promise<void> {
    await this.#client.send('tasks', 'GET', '/api/user/suggested-tasks');
  }

  async #readLists(): Promise<void> {
    await this.#client.send('lists', 'GET', '/api/v1/app-conversations/search?limit=20');
    await this.#client.send('lists', 'GET', '/api/v1/sandboxes/search?limit=20');
  }

  /** Into the log of the agent server, without running the agent. */
  async #sendMessage(turn: number): Promise<void> {
    const path = `/api/v1/sandboxes/${this.#sandbox.id}/agent-server/api/conversations/${this.#conversationId}/events`;
    const body = { role: 'user', content: [{ type: 'text', text: `load ${turn}` }], run: false };
    const headers = { 'X-Session-API-Key': this.#sandbox.key };
    if (await this.#client.send('messages', 'POST', path, { body, headers })) {
      this.#sent.push(turn);
    } else {
      this.#uncertain.add(turn);
    }
  }

  /** Starts a conversation, waits until it is there, and removes it. A request that is lost is sent again under its key. */
  async #start(turn: number, starter: number): Promise<void> {
    const startedAt = performance.now();
    const hasOwnSandbox = (turn + starter) % OWN_SANDBOX_EVERY === 0;
    const body = hasOwnSandbox ? {} : { sandbox_id: this.#sandbox.id };
    const headers = { 'Idempotency-Key': `${this.#userId}-${starter}-${turn}` };
    const send = () => this.#client.send('starts', 'POST', START, { body, headers });
    let answer = await send();
    for (let tries = 1; answer === null && tries < this.#startTries; tries += 1) {
      await wait(tries === 1 ? 0 : PAUSE_MS.starts);
      answer = await send();
    }
    if (answer === null) {
      this.#unknownStarts += 1;
      return;
    }
    this.#counts.acknowledged += 1;
    try {
      const task = await untilReady(this.#client, answer.body);
      this.#startMs.push(performance.now() - startedAt);
      const id = member(task, 'app_conversation_id');
      this.#conversationIds.add(id);
      // A sandbox is removed with its last conversation.
      await this.#client.send('removals', 'DELETE', `/api/v1/app-conversations/${id}`);
    } catch (error) {
      this.#counts.stuck += 1;
      this.#problems.push(`a start: ${String(error)}`);
    }
  }

  /** Numbers of the messages that the service has stored. */
  async #stored(): Promise<number[]> {
    const numbers: number[] = [];
    let page: string | null = '';
    while (page !== null) {
      const query: string = page === '' ? '' : `&page_id=${encodeURIComponent(page)}`;
      const path = `/api/v1/conversation/${this.#conversationId}/events/search?limit=100${query}`;
      const found: unknown = await this.#client.must('events', 'GET', path);
      numbers.push(
        ...jsonList(found, 'items')
          .map((event) => messageNumber(event))
          .filter((number) => number !== null),
      );
      page = jsonText(found, 'next_page_id');
    }
    return numbers;
  }

  #findings(stored: readonly number[]): Findings {
    const { tally } = this.#client;
    const problems = [...this.#problems];
    const counts = { ...this.#counts };
    counts.acknowledged += this.#sent.length + this.#secrets.acknowledged;
    counts.lost += missing(this.#sent, stored);
    counts.doubled += stored.length - new Set(stored).size;
    const certain = stored.filter((number) => !this.#uncertain.has(number));
    if (certain.join() !== this.#sent.join()) {
      problems.push(`${this.#sent.length} messages were acknowledged, and ${certain.length} are stored`);
    }
    const summarize = (what: string, followers: readonly (StreamFollower | SocketFollower)[]): string => {
      const sum = (value: (each: StreamFollower | SocketFollower) => number): number =>
        followers.reduce((total, each) => total + value(each), 0);
      const gaps = sum((each) => each.gaps) + sum(({ numbers }) => missing(stored, numbers));
      const doubled =
        sum((each) => each.doubled) + sum(({ numbers }) => numbers.length - new Set(numbers).size);
      counts.lost += gaps;
      counts.doubled += doubled;
      const disordered = followers.filter(({ numbers }) => !isAscending(numbers)).length;
      if (gaps + doubled + disordered > 0) {
        problems.push(`${what}: ${gaps} gaps, ${doubled} doubled, ${disordered} out of order`);
      }
      const ends = new Map<string, number>();
      followers.forEach((each) =>
        each.ends.forEach((times, how) => ends.set(how, (ends.get(how) ?? 0) + times)),
      );
      const reconnects = sum(({ connects }) => connects) - followers.length;
      const endings = [...ends].map(([how, times]) => `${times} ${how}`).join(', ');
      return `${what}: ${followers.length}, events ${sum(({ numbers }) => numbers.length)}, reconnects ${reconnects}, gaps ${gaps}, doubled ${doubled} (ends: ${endings})`;
    };
    const lines = [
      `requests ${tally.requests} in ${tally.seconds.toFixed(1)} s (${tally.kinds})`,
      `failed ${tally.failures.length}, lost during faults ${tally.lostAtFaults}, connections refused ${tally.refused}`,
      summarize('event streams', this.#streams),
      summarize('WebSockets', this.#sockets),
      `messages ${this.#sent.length} acknowledged, ${stored.length} stored; starts ${this.#startMs.length}, the slowest ${Math.round(Math.max(0, ...this.#startMs))} ms`,
    ];
    tally.failures.forEach(({ what, reason, at }) => problems.push(`${what} at ${at} s: ${reason}`));
    return { problems, lines, counts };
  }
}

const START = '/api/v1/app-conversations';

/** The task as soon as its conversation is there. */
async function untilReady(client: LoadClient, task: unknown): Promise<unknown> {
  const id = member(task, 'id');
  const startedAt = performance.now();
  // A process that is killed every other second finishes little: the time counts from the last damage.
  while (performance.now() < Math.max(startedAt, client.tally.undamagedSince) + START_TIMEOUT_MS) {
    const answer = await client.send('polls', 'GET', `/api/v1/app-conversations/start-tasks?ids=${id}`);
    const [found] = listOf(answer?.body);
    const status = jsonText(found, 'status');
    if (status === 'READY') {
      return found;
    }
    if (status === 'ERROR') {
      throw new Error(`it ended with ERROR: ${jsonText(found, 'detail') ?? ''}`);
    }
    await wait(PAUSE_MS.polls);
  }
  throw new Error(`it was not READY after ${START_TIMEOUT_MS / 1000} s`);
}

function listOf(body: unknown): unknown[] {
  return Array.isArray(body) ? body : [];
}

function member(body: unknown, name: string): string {
  const found = jsonAt(body, name);
  if (typeof found !== 'string') {
    throw new Error(`there is no ${name} in ${JSON.stringify(body)}`);
  }
  return found;
}

function missing(expected: readonly number[], numbers: readonly number[]): number {
  const got = new Set(numbers);
  return expected.filter((number) => !got.has(number)).length;
}

function isAscending(numbers: readonly number[]): boolean {
  return numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? 0));
}
