import { expect, it } from '@jest/globals';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { nativeAgent } from './native-agent.js';

const agent = nativeAgent();

/** What the model reads of a command's output, and what the event shows. */
async function outputOf(command: string): Promise<{ read: string; shown: string }> {
  const host = await agent.run(inOrder(call('terminal', { command }), say('done')));
  const [event] = host.ofKind('ObservationEvent');
  const shown =
    event?.observation.content.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? '';
  const read = agent.llm.requests[1]?.messages.at(-1)?.content;
  return { read: typeof read === 'string' ? read : '', shown };
}

// Kilo-Org/kilocode#6811, flosell/lambdacd#88: progress and colours fill the context.
it.each([
  [
    String.raw`for i in $(seq 1 5000); do printf '\rdownloading %5d of 5000' $i; done; echo; echo ready`,
    'downloading  5000 of 5000\nready\n',
  ],
  [String.raw`printf '\033[1;32mPASS\033[0m all\n'`, 'PASS all\n'],
  [`printf '%0500d\\n' 7`, `${'7'.padStart(500, '0')}\n`],
])('is read as a terminal would show it: %s', async (command, expected) => {
  const { read, shown } = await outputOf(command);
  expect(read.startsWith(`${expected}[Exit code 0`)).toBe(true);
  expect(shown.startsWith(`${expected}[Exit code 0`)).toBe(true);
});

it('CR LF is LF for the model only', async () => {
  const { read, shown } = await outputOf(String.raw`printf 'one\r\ntwo\r\n'`);
  expect(read).toMatch(/^one\ntwo\n\[Exit/);
  expect(shown).toMatch(/^one\r\ntwo\r\n?\[Exit/);
});

// https://github.com/anthropics/claude-code/issues/56064: half an emoji in the log, and no request is accepted any more.
it.each([14_998, 14_999, 15_000])('is cut between characters: an emoji after %d others', async (before) => {
  const xs = `head -c ${before} /dev/zero | tr '\\0' x`;
  const { shown } = await outputOf(`${xs}; printf '😀'; head -c 20000 /dev/zero | tr '\\0' y`);
  expect(agent.llm.refusals).toEqual([]);
  expect(shown).toContain('characters left out');
  expect(JSON.stringify(shown)).not.toMatch(/\\ud[89a-f]|\u{fffd}/iu);
});
