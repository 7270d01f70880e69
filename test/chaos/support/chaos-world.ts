import { setTimeout as wait } from 'node:timers/promises';
import { type Findings, Load } from '../../rolling/load.js';
import { Tally } from '../../rolling/tally.js';
import { reservedPort } from '../../support/reserved-port.js';
import type { ServiceProcess } from '../../support/service-process.js';
import type { TestDatabase } from '../../support/test-database.js';
import { until } from '../../support/until.js';
import { JourneyWorld } from '../../system/journeys/support/journey-world.js';
import { outcomeOf, type Outcome } from '../scenario.js';

/** More than enough for one load with its starts. */
const MAX_RUNNING = '30';
const START_TRIES = 40;
const STARTERS = 2;
/** What is left over must be gone so long after its user. */
const CLEAN_UP_MS = 240_000;
const POLL_MS = 50;

export interface ChaosOptions {
  /** The service has its own database, in its data folder. */
  embedded?: boolean;
  /** One that is there already. */
  database?: TestDatabase | null;
  /** Variables of the service. */
  environment?: Record<string, string>;
  nodeArgs?: string[];
  /** Address of this machine at which sandboxes reach the model and the git server. */
  host?: string;
  /** What an installation has left behind where its sandboxes are not processes of this machine. */
  countLeftOver?: (instanceId: string) => Promise<number>;
}

/** A service under load that is damaged: it keeps its address, its database and its folder over every start. */
export class ChaosWorld {
  readonly tally = new Tally();
  /** What a scenario sees that is wrong while it does its damage. */
  readonly problems: string[] = [];
  readonly #environment: Record<string, string>;
  readonly #nodeArgs: string[];
  readonly #countLeftOver: (instanceId: string) => Promise<number>;
  #service: ServiceProcess | null = null;

  private constructor(
    readonly journey: JourneyWorld,
    port: number,
    { environment, nodeArgs, countLeftOver }: ChaosOptions,
  ) {
    this.#environment = { PORT: String(port), MAX_RUNNING_SANDBOXES: MAX_RUNNING, ...environment };
    this.#nodeArgs = nodeArgs ?? [];
    this.#countLeftOver = countLeftOver ?? (() => Promise.resolve(0));
  }

  /** Gives a scenario a world of its own, and takes it away afterwards. */
  static async with<T>(options: ChaosOptions, work: (world: ChaosWorld) => Promise<T>): Promise<T> {
    const journey = await JourneyWorld.open({
      embedded: options.embedded ?? false,
      database: options.database ?? null,
      ...(options.host !== undefined && { host: options.host }),
    });
    const world = new ChaosWorld(journey, await reservedPort(), options);
    try {
      return await work(world);
    } catch (error) {
      process.stdout.write(`${world.#service?.log.slice(-20).join('\n') ?? 'the service never ran'}\n`);
      throw error;
    } finally {
      await journey.close();
    }
  }

  get service(): ServiceProcess {
    if (this.#service === null) {
      throw new Error('the service has not been started');
    }
    return this.#service;
  }

  get url(): string {
    return this.service.url;
  }

  async start(onSpawn?: (pid: number) => void): Promise<void> {
    this.#service = await this.journey.start(this.#environment, this.#nodeArgs, onSpawn);
  }

  /** Kills the service, which loses what is under way there, and starts it again. */
  async killAndRestart(): Promise<void> {
    await this.tally.duringFault(async () => {
      await this.journey.kill(this.service);
      await this.start();
      await this.untilReady();
    });
  }

  /** Whether the service says that it can serve. */
  async untilReady(): Promise<void> {
    await until(async () => (await statusOf(`${this.url}/health/ready`)) === 200);
  }

  /**
   * Keeps the service busy while the damage is done, then looks at everything that was acknowledged, removes the user of the
   * load and looks for what is left of their sandboxes.
   */
  async underLoad(damage: (load: Load) => Promise<void>): Promise<Outcome> {
    const phases = new Phases();
    const load = await Load.prepare(
      {
        url: this.url,
        adminKey: this.journey.adminKey,
        settings: this.journey.modelSettings(),
        gitToken: this.journey.hub.token,
        startTries: START_TRIES,
        starters: STARTERS,
      },
      this.tally,
    );
    phases.end('prepared');
    let findings: Findings;
    try {
      findings = await load.during(async () => {
        await damage(load);
        phases.end('damaged');
      });
      phases.end('compared');
    } finally {
      await load.close();
    }
    phases.end('removed');
    const outcome = outcomeOf(this.tally.faults, findings, await this.#leftOver());
    phases.end('cleaned up');
    return {
      ...outcome,
      problems: [...outcome.problems, ...this.problems],
      notes: [...outcome.notes, phases.line],
    };
  }

  /** Processes, folders and containers of sandboxes, none of which has an owner any more. */
  async #leftOver(): Promise<number> {
    const count = async (): Promise<number> =>
      this.journey.sandboxProcesses().length +
      (await this.journey.sandboxFolders()).length +
      (await this.#countLeftOver(this.journey.instanceId));
    const deadline = performance.now() + CLEAN_UP_MS;
    while ((await count()) > 0 && performance.now() < deadline) {
      await wait(POLL_MS);
    }
    return await count();
  }
}

/** How long the parts of a scenario took. */
class Phases {
  readonly #ended: string[] = [];
  #since = performance.now();

  end(phase: string): void {
    const now = performance.now();
    this.#ended.push(`${phase} in ${((now - this.#since) / 1000).toFixed(1)} s`);
    this.#since = now;
  }

  get line(): string {
    return this.#ended.join(', ');
  }
}

/** The status of an answer; null when there is none. */
export async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number | null> {
  try {
    const response = await fetch(url, { headers });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return null;
  }
}
