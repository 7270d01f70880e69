import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ListeningServer, PlainOptions } from '../listen-assigned.js';

export type Order = { id: number } & ({ start: PlainOptions } | { stop: number });

export interface Outcome {
  id: number;
  /** Port of an agent server that has started. */
  port: number;
  failure: string | null;
}

const LOADER = fileURLToPath(new URL('../../../../../scripts/lib/typescript-loader.cjs', import.meta.url));
const PROGRAM = fileURLToPath(new URL('small-process.main.ts', import.meta.url));
const NODE_ARGUMENTS = [
  '--max-semi-space-size=4',
  '--disable-warning=ExperimentalWarning',
  '--require',
  LOADER,
];

// This module is loaded once for each worker (docs/adr/0017), so its files share the process.
let running: ChildProcess | null = null;
let orders = 0;
const waiting = new Map<number, PromiseWithResolvers<Outcome>>();

/** Starts an agent server with the fake engine in the small process beside this worker, which ends with the worker. */
export async function listenInSmallProcess(start: PlainOptions): Promise<ListeningServer> {
  const { id, port } = await carryOut({ start });
  return { port, stop: async () => void (await carryOut({ stop: id })) };
}

async function carryOut(order: { start: PlainOptions } | { stop: number }): Promise<Outcome> {
  running ??= begin();
  const id = (orders += 1);
  const answered = Promise.withResolvers<Outcome>();
  running.send({ id, ...order } satisfies Order);
  running.channel?.ref();
  waiting.set(id, answered);
  const outcome = await answered.promise;
  if (outcome.failure !== null) {
    throw new Error(outcome.failure);
  }
  return outcome;
}

function begin(): ChildProcess {
  const child = fork(PROGRAM, {
    execArgv: NODE_ARGUMENTS,
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  child.on('message', (outcome: Outcome) => {
    waiting.get(outcome.id)?.resolve(outcome);
    waiting.delete(outcome.id);
    if (waiting.size === 0) {
      child.channel?.unref();
    }
  });
  child.once('exit', (code, signal) => {
    running = null;
    const failure = `the process of the agent servers has ended: ${code ?? signal}`;
    waiting.forEach(({ resolve }, id) => resolve({ id, port: 0, failure }));
    waiting.clear();
  });
  child.unref();
  return child;
}
