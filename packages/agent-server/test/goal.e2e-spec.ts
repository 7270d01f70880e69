import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { call, fails, say, type ScriptedAnswer } from './fakes/scripted-llm.answers.js';
import type { ChatRequest } from './fakes/scripted-llm.js';
import { nativeServer } from './field/native-server.js';
import { until } from '../../../test/support/until.js';

const OBJECTIVE = 'All tests pass.';

const native = nativeServer({ pauseGraceMs: 100 });

const lastText = ({ messages }: ChatRequest): string => JSON.stringify(messages.at(-1)?.content);
const isJudging = (request: ChatRequest): boolean => lastText(request).includes('Judge as an auditor');
const verdict = (complete: boolean, missing = '', score = complete ? 1 : 0.25): ScriptedAnswer =>
  say(JSON.stringify({ score, complete, missing }));
const met = verdict(true);

/** A conversation whose judge answers in this order, the last one for ever; the agent always answers `Done.` */
async function start(
  verdicts: ScriptedAnswer[],
  agent: (request: ChatRequest) => ScriptedAnswer = () => say('Done.'),
  members: Record<string, unknown> = {},
): Promise<string> {
  let judged = 0;
  return await native().begin((request) => {
    if (!isJudging(request)) {
      return agent(request);
    }
    judged += 1;
    return verdicts[Math.min(judged, verdicts.length) - 1] ?? met;
  }, members);
}

const client = () => native().server.client;
const asks = (): ChatRequest[] => native().llm.requests;
const post = async (id: string, action: string, body?: object) => await client().act(id, action, body);
const begin = async (id: string, members: object = {}) =>
  await post(id, 'goal', { objective: OBJECTIVE, ...members });

async function told(id: string): Promise<unknown[]> {
  const updates = await client().events(id, '&kind=ConversationStateUpdateEvent');
  return updates.filter((event) => jsonAt(event, 'key') === 'goal').map((event) => jsonAt(event, 'value'));
}

const untilTold = async (id: string, status: string): Promise<void> =>
  await until(async () => jsonText((await told(id)).at(-1), 'status') === status);

async function asked(id: string): Promise<unknown[]> {
  const messages = await client().events(id, '&kind=MessageEvent&source=user');
  return messages.map((event) => jsonAt(event, 'llm_message', 'content'));
}

describe('a goal', () => {
  it('is worked towards, round by round, until the judge says that it is met', async () => {
    const id = await start([verdict(false, 'two tests fail'), met]);
    expect(await begin(id)).toEqual({ status: 200, body: { success: true } });
    await untilTold(id, 'complete');

    const of = { objective: OBJECTIVE, max_iterations: 10 };
    const first = { score: 0.25, complete: false, missing: 'two tests fail' };
    const last = { score: 1, complete: true, missing: '' };
    expect(await told(id)).toEqual([
      { ...of, active: true, status: 'running', iteration: 0, verdict: null },
      { ...of, active: true, status: 'running', iteration: 1, verdict: first },
      { ...of, active: false, status: 'complete', iteration: 2, verdict: last },
    ]);
    const messages = JSON.stringify(await asked(id));
    expect(messages).toContain(OBJECTIVE);
    expect(messages).toContain('two tests fail');
    // The judge is the conversation's model, knows the whole conversation, and leaves no trace in it.
    const judging = asks().filter(isJudging);
    expect(judging).toHaveLength(2);
    expect(judging[0]?.model).toBe('fake');
    expect(judging[0]?.text).toContain('Done.');
    expect(messages).not.toContain('auditor');
    expect(await client().answers(id)).toEqual(['Done.', 'Done.']);
  });

  it('ends after its rounds', async () => {
    const id = await start([verdict(false, 'everything')]);
    await begin(id, { max_iterations: 2 });
    await untilTold(id, 'capped');
    const last = { active: false, iteration: 2, verdict: { missing: 'everything' } };
    expect((await told(id)).at(-1)).toMatchObject(last);
    expect(asks().filter(isJudging)).toHaveLength(2);
    expect(await post(id, 'goal/resume')).toMatchObject({ status: 400 });
  });

  it('is not met by a verdict that cannot be read', async () => {
    const id = await start([say('I think it is fine.'), met]);
    await begin(id);
    await untilTold(id, 'complete');
    expect((await told(id))[1]).toMatchObject({ iteration: 1, verdict: { score: 0, complete: false } });
  });

  it('is stopped while the judge thinks, and goes on from there', async () => {
    const id = await start([verdict(false, 'one'), { kind: 'hang' }, met]);
    await begin(id);
    await until(() => asks().filter(isJudging).length === 2);
    expect(await begin(id)).toMatchObject({ status: 409 });
    expect(await post(id, 'goal/resume')).toMatchObject({ status: 409 });
    expect(await post(id, 'goal/stop')).toEqual({ status: 200, body: { success: true } });
    expect((await told(id)).at(-1)).toMatchObject({ active: false, status: 'interrupted', iteration: 1 });
    await post(id, 'goal/stop');
    expect(await told(id)).toHaveLength(3);

    expect(await post(id, 'goal/resume')).toMatchObject({ status: 200 });
    await untilTold(id, 'complete');
    expect((await told(id)).at(-1)).toMatchObject({ iteration: 2, objective: OBJECTIVE });
    expect(JSON.stringify(await asked(id))).toContain('was interrupted and goes on');
  });

  it('is stopped while the agent works, which goes on', async () => {
    const id = await start([met], ({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? say('Done.')
        : call('terminal', { command: 'until [ -e go ]; do sleep 0.01; done' }),
    );
    await begin(id);
    await until(async () => (await client().kinds(id)).includes('ActionEvent'));
    await post(id, 'goal/stop');
    await writeFile(path.join(native().server.workspace, 'project/go'), '');
    await client().untilStatus(id, 'finished');
    expect((await told(id)).map((value) => jsonText(value, 'status'))).toEqual(['running', 'interrupted']);
    expect(asks().filter(isJudging)).toEqual([]);
  });

  it.each(['pause', 'interrupt'])('ends with a %s, of the agent or of the judge', async (action) => {
    const id = await start([{ kind: 'hang' }], ({ index }) =>
      index === 0 ? { kind: 'hang' } : say('Done.'),
    );
    await begin(id);
    await until(() => asks().length === 1);
    await post(id, action);
    expect(await client().status(id)).toBe('paused');
    expect((await told(id)).at(-1)).toMatchObject({ status: 'interrupted', iteration: 0 });
    await post(id, 'goal/resume');
    await until(() => asks().filter(isJudging).length === 1);
    await post(id, action);
    expect((await told(id)).at(-1)).toMatchObject({ status: 'interrupted', iteration: 0 });
    expect(await told(id)).toHaveLength(4);
  });

  it('ends with a message of the user', async () => {
    const id = await start([{ kind: 'hang' }]);
    await begin(id);
    await until(() => asks().some(isJudging));
    await client().talk(id, 'Something else.');
    expect((await told(id)).at(-1)).toMatchObject({ active: false, status: 'interrupted' });
    expect(asks().filter(isJudging)).toHaveLength(1);
  });

  it('waits for a confirmation', async () => {
    const id = await start(
      [met],
      ({ messages }) =>
        messages.some(({ role }) => role === 'tool') ? say('Done.') : call('terminal', { command: 'true' }),
      { confirmation_policy: { kind: 'AlwaysConfirm' } },
    );
    await begin(id);
    await client().untilStatus(id, 'waiting_for_confirmation');
    expect(await told(id)).toMatchObject([{ status: 'running' }]);
    await post(id, 'events/respond_to_confirmation', { accept: true });
    await untilTold(id, 'complete');
  });

  it('is interrupted, and says why, when the agent fails or the judge does', async () => {
    const id = await start([fails(401, 'no such key')], ({ index }) =>
      index === 0 ? fails(401, 'wrong key') : say('Done.'),
    );
    await begin(id);
    await untilTold(id, 'interrupted');
    expect(await client().status(id)).toBe('error');
    await post(id, 'goal/resume');
    await until(async () => (await told(id)).length === 4);
    expect((await told(id)).at(-1)).toMatchObject({ status: 'interrupted', iteration: 0 });
    expect((await client().events(id, '&kind=ConversationErrorEvent')).at(-1)).toMatchObject({
      code: 'GoalInterrupted',
      detail: expect.stringContaining('no such key'),
    });
  });

  it.each([
    [
      'the agent works',
      ({ index }: ChatRequest): ScriptedAnswer => (index === 0 ? { kind: 'hang' } : say('Done.')),
    ],
    ['the judge thinks', () => say('Done.')],
  ])('is interrupted by the end of the server while %s, and goes on after it', async (what, agent) => {
    const isOfJudge = what.includes('judge');
    const id = await start(isOfJudge ? [{ kind: 'hang' }, met] : [met], agent);
    await begin(id, { max_iterations: 3 });
    await until(() => asks().length === (isOfJudge ? 2 : 1));
    await native().server.restart();
    expect(await told(id)).toMatchObject([
      { active: true, status: 'running' },
      { active: false, status: 'interrupted', iteration: 0, max_iterations: 3, objective: OBJECTIVE },
    ]);
    expect(await post(id, 'goal/resume')).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('/credentials') },
    });
    await native().moveTo(id);
    expect(await post(id, 'goal/resume')).toMatchObject({ status: 200 });
    await untilTold(id, 'complete');
    expect((await told(id)).at(-1)).toMatchObject({ iteration: 1, max_iterations: 3 });
  });

  it('is interrupted in a copy of the conversation', async () => {
    const id = await start([{ kind: 'hang' }]);
    await begin(id);
    await until(() => asks().some(isJudging));
    const { body } = await post(id, 'fork', {});
    expect((await told(String(jsonText(body, 'id')))).at(-1)).toMatchObject({ status: 'interrupted' });
    expect((await told(id)).at(-1)).toMatchObject({ status: 'running' });
  });

  it('is masked', async () => {
    const id = await start([met], undefined, { secrets: { TOKEN: 'a-secret-token' } });
    await begin(id, { objective: 'a-secret-token is right.' });
    await untilTold(id, 'complete');
    expect(JSON.stringify(await client().events(id))).not.toContain('a-secret-token');
  });

  it('is none without words, with too many rounds, or where none was interrupted', async () => {
    const id = await start([met]);
    const rounds = [0, 101].map((max_iterations) => ({ objective: 'x', max_iterations }));
    for (const body of [{}, { objective: ' ' }, ...rounds]) {
      expect(await post(id, 'goal', body)).toMatchObject({ status: 422 });
    }
    expect(await post(id, 'goal/resume')).toEqual({
      status: 400,
      body: { detail: 'There is no interrupted goal to resume.' },
    });
    expect(await post(id, 'goal/stop')).toMatchObject({ status: 200 });
    expect(await told(id)).toEqual([]);
  });
});
