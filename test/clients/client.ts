import type { ClientCache } from './support/client-cache.js';
import type { ClientsWorld } from './support/clients-world.js';
import type { Steps } from './support/steps.js';

/** A program, our own or another's, that speaks to the service. */
export interface Client {
  /** The beginning of its file's name. */
  name: string;
  /** What is run, with its version. */
  what: string;
  /**
   * Installs what it needs, outside the repository.
   *
   * @returns how to run it
   * @throws NotInstallable where the machine cannot have it
   */
  install(cache: ClientCache): Promise<InstalledClient>;
}

export interface InstalledClient {
  /** Variables of the service. */
  environment?: Record<string, string>;
  /** Goes through the steps; one that fails does not end the others. */
  run(world: ClientsWorld, steps: Steps): Promise<void>;
}

/** The machine cannot have a client. The message says why, for the table. */
export class NotInstallable extends Error {}
