import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { NotInstallable } from '../test/clients/client.js';
import { say } from '../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../packages/agent-server/test/fakes/scripted-llm.js';
import { withFolder } from './support/fixtures.js';
import { HttpClient } from './support/http-client.js';
import { installPeer, startPeer } from './support/peer-server.js';
import { median, type Outcome, print, spread } from './support/report.js';
import { withSandboxService } from './support/sandbox-service.js';
import { npmStart } from './support/started-programs.js';

const STARTS = 2;
const CALLS = 30;
/** The peer makes a caller wait who sends more than ten requests in a second. It applies to both. */
const BETWEEN_CALLS_MS = 125;
const SETTINGS = '/api/v1/settings';

type Side = 'ours' | 'peer';
const SIDES: readonly Side[] = ['ours', 'peer'];
type Row = { what: string } & Record<Side, number[]>;

/** The peer's server beside ours: the same requests of its API in turns. */
export async function benchPeer(): Promise<Outcome[]> {
  const python = await installPeer().catch((error: unknown) => {
    if (!(error instanceof NotInstallable)) {
      throw error;
    }
    print(
      `  NOT MEASURED: ${error.message}. It needs Python 3.12 or 3.13 (PYTHON names one) and a package index.`,
    );
    return null;
  });
  if (python === null) {
    return [];
  }
  const rows = await withFolder(async (folder) => {
    const starts = await startRow(python, folder);
    const llm = await ScriptedLlm.start(() => say('It is done.'));
    const peer = await startPeer(python, path.join(folder, 'peer'));
    const client = new HttpClient(peer.url, 'it asks for none');
    try {
      const environment = { SANDBOX_NETWORK_ALLOW: new URL(llm.url).host };
      return await withSandboxService(environment, async ({ clients: [ours] }) => [
        starts,
        ...(await callRows({ ours, peer: client }, llm.url)),
      ]);
    } finally {
      client.close();
      await peer.stop();
      await llm.close();
    }
  });
  return rows.map((row) => outcomeOf(row));
}

/** Both on folders that they know already. */
async function startRow(python: string, folder: string): Promise<Row> {
  const row: Row = { what: 'start to the first answer', ours: [], peer: [] };
  for (let round = 0; round <= STARTS; round += 1) {
    const ours = await npmStart(path.join(folder, 'npm-start'));
    await ours.stop();
    const peer = await startPeer(python, path.join(folder, 'peer'));
    await peer.stop();
    if (round > 0) {
      row.ours.push(ours.readyMs);
      row.peer.push(peer.readyMs);
    }
  }
  return row;
}

async function callRows(clients: Record<Side, HttpClient>, modelUrl: string): Promise<Row[]> {
  const llm = { model: 'openai/scripted', api_key: 'sk-bench', base_url: modelUrl };
  const body = JSON.stringify({ language: 'en', agent_settings_diff: { llm } });
  const search = '/api/v1/app-conversations/search';
  const calls = [
    { what: 'POST settings', request: { method: 'POST', path: SETTINGS, body } },
    { what: 'GET settings', request: { method: 'GET', path: SETTINGS } },
    { what: 'list of conversations, empty', request: { method: 'GET', path: search } },
  ] as const;
  const rows = calls.map(({ what }): Row => ({ what, ours: [], peer: [] }));
  for (let round = 0; round <= CALLS; round += 1) {
    for (const [index, { request }] of calls.entries()) {
      for (const side of SIDES) {
        const { ms } = await clients[side].expectOk(request);
        if (round > 0) {
          rows[index]?.[side].push(ms);
        }
        await delay(BETWEEN_CALLS_MS);
      }
    }
  }
  return rows;
}

function outcomeOf({ what, ours, peer }: Row): Outcome {
  const ratio = median(peer) / median(ours);
  const measured = `${ratio.toFixed(1)} x (${spread(ours, 1)} ms, the peer ${spread(peer, 1)} ms)`;
  print(`  ${what}: ${measured}`);
  return { what, target: '>= 1 x', measured, reached: ratio >= 1 };
}
