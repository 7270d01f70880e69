import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { call, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { type ChatRequest, ScriptedLlm } from '../fakes/scripted-llm.js';
import { MODEL_TASKS, resultTable, tryTask } from './model-tasks.js';

const LIMIT_MS = 60_000;

const shell = (command: string): ScriptedAnswer => call('terminal', { command });
/** What a model would do, and what it would say afterwards. */
const ABLE: Record<string, [ScriptedAnswer, string]> = {
  'make a file': [shell('echo hello > hello.txt'), 'Done.'],
  'change a word': [shell("sed -i 's/old/new/' greeting.txt"), 'Done.'],
  'mend a test': [shell("sed -i 's/a - b/a + b/' sum.mjs"), 'Done.'],
  'find a name': [shell('grep -rn "function zebraCrossing" .'), 'In src/deep/er/walk.js.'],
  'count lines': [shell('wc -l data.csv'), '137'],
  'run a program': [shell(`"${process.execPath}" secret.mjs > answer.txt`), 'Done.'],
  'move a file': [shell('mv first.txt second.txt'), 'Done.'],
  'edit JSON': [shell("sed -i 's/1.0.0/1.2.3/' package.json"), 'Done.'],
  'use a tool server': [call('act', {}), 'I did.'],
  remember: [call('think', { thought: 'The number is 7319.' }), 'It is 7319.'],
};

let llm: ScriptedLlm;
beforeAll(async () => {
  llm = await ScriptedLlm.start(() => say('I do not know.'));
});
afterAll(async () => {
  await llm.close();
});

const model = () => ({ model: 'openai/scripted', apiKey: 'k', baseUrl: llm.url });
const isBegun = ({ messages }: ChatRequest): boolean => messages.at(-1)?.role === 'tool';

describe('the tasks for real models', () => {
  it('are those that the stand-in knows', () => {
    expect(MODEL_TASKS.map(({ name }) => name)).toEqual(Object.keys(ABLE));
  });

  it.each(MODEL_TASKS)('$name: is done by a model that does it, and by no other', async (task) => {
    const [act, words] = ABLE[task.name] ?? [say(''), ''];
    llm.script = (request) => (isBegun(request) ? say(words) : act);
    expect(await tryTask(task, model(), LIMIT_MS)).toMatchObject({ isDone: true, end: 'finished' });
    llm.script = () => say('I do not know.');
    expect(await tryTask(task, model(), LIMIT_MS)).toMatchObject({ isDone: false, end: 'finished' });
  });

  it('are shown in a table', () => {
    const result = { name: 'count lines', isDone: false, steps: 2, tokens: 9, seconds: 1, end: 'error' };
    expect(resultTable([result]).at(-1)).toBe('| count lines | no | 2 | 9 | 1 | error |');
  });
});
