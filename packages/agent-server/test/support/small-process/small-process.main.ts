import { createRequire } from 'node:module';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { exitProcess } from '@slipway/common/processes/end-processes.js';
import { FakeEngine } from '../../fakes/fake-engine.js';
import { listenAssigned, type ListeningServer } from '../listen-assigned.js';
import type { Order, Outcome } from './small-process.js';

/** Has compiled this file. */
const LOADER = '../../../../../scripts/lib/typescript-loader.cjs';

const loader: { writeCoverage(): void } = createRequire(import.meta.url)(LOADER);
const servers = new Map<number, ListeningServer>();

/** The port of an agent server that starts. */
async function carryOut(order: Order): Promise<number> {
  if ('start' in order) {
    const server = await listenAssigned({ ...order.start, createEngine: async () => new FakeEngine() });
    servers.set(order.id, server);
    return server.port;
  }
  await servers.get(order.stop)?.stop();
  servers.delete(order.stop);
  loader.writeCoverage();
  return 0;
}

process.on('message', async (order: Order) => {
  const outcome: Outcome = { id: order.id, port: 0, failure: null };
  try {
    outcome.port = await carryOut(order);
  } catch (error) {
    outcome.failure = errorMessage(error);
  }
  process.send?.(outcome);
});
process.once('disconnect', () => exitProcess());
