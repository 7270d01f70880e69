import type { HostileWorld } from './support/hostile-world.js';

/** How the attacked service runs sandboxes: processes in bubblewrap, processes in nothing, containers, pods. */
export const BACKENDS = ['process', 'unwrapped', 'docker', 'kubernetes'] as const;
export type AttackedBackend = (typeof BACKENDS)[number];

/** What the service says of an attack on one backend. */
export interface Expectation {
  outcome: 'held' | 'not promised';
  /** What an observer sees, in one sentence. */
  because: string;
}

/** What an attack came to. */
export interface Sighting {
  /** False: a tenant was harmed, or could have been. */
  held: boolean;
  /** What was seen, in one line: numbers, statuses, texts of errors. */
  seen: string;
}

/**
 * One attack, the only export of `attacks/<name>.attack.ts`. It runs against a service with two tenants who have done
 * nothing to each other: Bob attacks, Alice is who gets hurt. Attacks of one backend run one after the other on the same
 * service, in the order of their names; what one breaks (an ended service, a lost sandbox) is made anew before the next. An
 * attack that ends the service, or needs other settings, starts one of its own: `world.apart(…)`.
 */
export interface Attack {
  /** The name of its file, without `.attack.ts`. */
  name: string;
  /** Number of the finding that it repeats; `not tried`: of the list of what that reading left out; `held`: held even then. */
  finding: number | 'not tried' | 'held';
  /** What is done to whom: one sentence. */
  what: string;
  /** By backend; it is not run on others. */
  expected: Partial<Record<AttackedBackend, Expectation>>;
  /** Its verdict is about response times, so it needs a machine that does nothing else. */
  timed?: true;
  /** @throws Error when the attack itself did not work, which says nothing about the service and counts as failed */
  run(world: HostileWorld): Promise<Sighting>;
}

/** The service promises this. */
export function held(because: string): Expectation {
  return { outcome: 'held', because };
}

/** An operator who runs the service this way accepts it. */
export function notPromised(because: string): Expectation {
  return { outcome: 'not promised', because };
}

/** The same on every backend. */
export function everywhere(expected: Expectation): Record<AttackedBackend, Expectation> {
  return { ...onOneMachine(expected), kubernetes: expected };
}

/** Of an attack on the service alone, which is the same whatever sandboxes run in. */
export function ofService(expected: Expectation): Record<'process', Expectation> {
  return { process: expected };
}

/** The same on every backend whose sandboxes are on the machine of the service. */
export function onOneMachine(
  expected: Expectation,
): Record<Exclude<AttackedBackend, 'kubernetes'>, Expectation> {
  return { process: expected, unwrapped: expected, docker: expected };
}
