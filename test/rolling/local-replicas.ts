import { RoundRobin } from '../support/round-robin.js';
import type { ServiceProcess } from '../support/service-process.js';
import type { JourneyWorld } from '../system/journeys/support/journey-world.js';
import type { Tally } from './tally.js';

/** Two checks of the balancer, and what they may be late by. */
const SHUTDOWN_DELAY_SECONDS = 3;

/** Processes of the service behind a balancer, restarted as Kubernetes does it: the next one is ready before one stops. */
export class LocalReplicas {
  readonly #world: JourneyWorld;
  readonly #balancer: RoundRobin;
  readonly #replicas: ServiceProcess[] = [];

  private constructor(world: JourneyWorld, balancer: RoundRobin) {
    this.#world = world;
    this.#balancer = balancer;
  }

  static async start(world: JourneyWorld, count: number): Promise<LocalReplicas> {
    const replicas = new LocalReplicas(world, await RoundRobin.start());
    // Together, as the first roll-out does: one of them migrates.
    replicas.#replicas.push(
      ...(await Promise.all(Array.from({ length: count }, () => replicas.#startOne()))),
    );
    return replicas;
  }

  /** Where the balancer is. */
  get url(): string {
    return this.#balancer.url;
  }

  /** Starts another replica in the place of this one, then stops this one in order. */
  async restart(index: number): Promise<void> {
    const old = this.#at(index);
    this.#replicas[index] = await this.#startOne();
    await this.#world.stop(old);
    this.#balancer.remove(old.url);
  }

  /** Ends a replica at once (`kill -9`), then starts another one in its place. */
  async kill(index: number, tally: Tally): Promise<void> {
    const old = this.#at(index);
    await tally.duringFault(() => this.#world.kill(old));
    this.#replicas[index] = await this.#startOne();
    this.#balancer.remove(old.url);
  }

  /** The replicas themselves go with the world. */
  async close(): Promise<void> {
    await this.#balancer.close();
  }

  #at(index: number): ServiceProcess {
    const replica = this.#replicas[index];
    if (replica === undefined) {
      throw new Error(`there is no replica ${index}`);
    }
    return replica;
  }

  async #startOne(): Promise<ServiceProcess> {
    const { url } = this.#balancer;
    const replica = await this.#world.start({
      PUBLIC_URL: url,
      SANDBOX_CALLBACK_URL: url,
      SANDBOX_EXPOSE: 'path',
      SHUTDOWN_DELAY_SECONDS: String(SHUTDOWN_DELAY_SECONDS),
    });
    await this.#balancer.add(replica.url);
    return replica;
  }
}
