import { benchAutomations } from './automations.bench.js';
import { benchConversations } from './conversations.bench.js';
import { benchEgress } from './egress.bench.js';
import { benchGrowth } from './growth.bench.js';
import { benchKubernetes } from './kubernetes.bench.js';
import { benchLoad } from './load.bench.js';
import { benchPeer } from './peer.bench.js';
import { benchRunning } from './running.bench.js';
import { benchSandboxes } from './sandboxes.bench.js';
import { benchSettings } from './settings.bench.js';
import { benchSignIn } from './sign-in.bench.js';
import { benchStartUp } from './start-up.bench.js';
import { benchStreams } from './streams.bench.js';
import { benchSuggestedTasks } from './suggested-tasks.bench.js';
import { type BENCHES, COMMAND_LINES } from '../scripts/lib/command-lines.js';
import { type Outcome, print } from './support/report.js';
import { benchWarm } from './warm.bench.js';

const PROGRAMS: Record<(typeof BENCHES)[number], () => Promise<Outcome[]>> = {
  'start-up': benchStartUp,
  'suggested-tasks': benchSuggestedTasks,
  settings: benchSettings,
  'sign-in': benchSignIn,
  sandboxes: benchSandboxes,
  kubernetes: benchKubernetes,
  conversations: benchConversations,
  running: benchRunning,
  warm: benchWarm,
  egress: benchEgress,
  automations: benchAutomations,
  streams: benchStreams,
  load: benchLoad,
  growth: benchGrowth,
  peer: benchPeer,
};
/** Only by name: the program of others, a cluster, a million conversations. All the rest takes less than ten minutes. */
const OPT_IN = new Set(['peer', 'kubernetes', 'growth']);

const [wanted] = COMMAND_LINES['bench/run.ts'].parse().processedArgs;
const chosen = Object.entries(PROGRAMS).filter(([name]) =>
  wanted.length === 0 ? !OPT_IN.has(name) : wanted.some((one) => one === name),
);
const outcomes: Outcome[] = [];
for (const [name, bench] of chosen) {
  print(`\n${name}`);
  const begunAt = performance.now();
  outcomes.push(...(await bench()));
  print(`  (${((performance.now() - begunAt) / 1000).toFixed(0)} s)`);
}
print('');
for (const { what, target, measured, reached } of outcomes) {
  print(`${reached ? 'reached ' : 'MISSED  '} ${what}: ${measured}, target ${target}`);
}
const missed = outcomes.filter(({ reached }) => !reached).length;
if (outcomes.length === 0) {
  print('NOTHING WAS MEASURED.\n');
} else {
  print(
    missed === 0
      ? '\nAll targets were reached.\n'
      : `\n${missed} OF ${outcomes.length} TARGETS WERE MISSED.\n`,
  );
}
