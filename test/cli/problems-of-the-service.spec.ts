import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { runSlipway } from '../../src/cli/slipway-program.js';
import { ERROR_CODES } from '../../src/common/errors/domain-error.js';
import { RawServer } from '../support/raw-server.js';
import { committedDocument, resolvedOperations } from '../support/resolved-document.js';

const PAGE = 'https://github.com/o/r/issues/1';
const FINISHED = {
  id: '1',
  kind: 'ConversationStateUpdateEvent',
  key: 'execution_status',
  value: 'finished',
};

/** Every request of the commands, a command that makes it, and what else it needs to get so far. */
const REQUESTS: [string, string[], unknown?][] = [
  ['GET /api/user/suggested-tasks', ['tasks'], []],
  ['GET /api/v1/users/me', ['run', PAGE], { provider_tokens_set: { github: null } }],
  ['POST /api/v1/app-conversations', ['run', PAGE], { id: '{id}' }],
  [
    'GET /api/v1/app-conversations/start-tasks',
    ['run', PAGE],
    [{ status: 'READY', app_conversation_id: '{id}' }],
  ],
  ['GET /api/v1/conversation/{id}/events/stream', ['watch', '{id}'], FINISHED],
  ['GET /api/v1/app-conversations', ['watch', '{id}'], [{ execution_status: 'finished' }]],
  ['GET /api/v1/conversation/{id}/events/search', ['watch', '{id}'], { items: [FINISHED] }],
  ['POST /api/v1/app-conversations/{id}/pull-request', ['pull-request', '{id}']],
  [
    'GET /api/v1/sandboxes/search',
    ['sandboxes', 'list'],
    { items: [{ id: '{id}', status: 'RUNNING' }], next_page_id: null },
  ],
  ['POST /api/v1/sandboxes/{id}/pause', ['sandboxes', 'stop', '--all']],
  ['GET /api/v1/sandboxes', ['sandboxes', 'stop', '{id}'], [{ id: '{id}', status: 'PAUSED' }]],
  ['GET /api/v1/api-keys', ['keys', 'list'], []],
  ['POST /api/v1/api-keys', ['keys', 'create']],
  ['DELETE /api/v1/api-keys/{id}', ['keys', 'revoke', '{id}']],
  [
    'GET /api/v1/users',
    ['keys', 'list', '--user', 'a@b.example'],
    { items: [{ id: '{id}' }], next_page_id: null },
  ],
  ['POST /api/v1/model-check', ['model', 'check'], { checks: [] }],
];

interface Failure {
  status: number;
  body: unknown;
}

/** The failures of an operation that the document has an example of. */
const DOCUMENTED = new Map(
  resolvedOperations(committedDocument()).map(({ name, operation }) => [
    name,
    Object.entries(operation.responses).flatMap(([status, response]): Failure[] => {
      const { example, examples = {} } = Object(response).content?.['application/json'] ?? {};
      const bodies = [example, ...Object.values(examples).map((each) => Object(each).value)];
      return Number(status) < 400
        ? []
        : bodies.filter(Boolean).map((body: unknown) => ({ status: Number(status), body }));
    }),
  ]),
);

/** What the command has to repeat of it. */
function textsOf(body: unknown): string[] {
  const problems = jsonList(body, 'detail').map((problem) => jsonText(problem, 'msg') ?? '');
  const hosts = jsonList(body, 'errors').flatMap((host) =>
    ['provider', 'code', 'detail'].map((key) => jsonText(host, key) ?? ''),
  );
  // Of hosts, the sentence in front of what a program does.
  return [jsonText(body, 'detail')?.split(hosts.length > 0 ? ';' : '\0')[0] ?? '', ...problems, ...hosts];
}

describe('slipway passes on why the service refuses', () => {
  let service: RawServer;
  let failure: (Failure & { request: string }) | null = null;
  const answers = new Map(REQUESTS.map(([request, , answer]) => [request, answer ?? {}]));

  beforeAll(async () => {
    service = await RawServer.start((asked, response) => {
      const request = `${asked.method} ${decodeURIComponent(asked.url ?? '').split('?')[0]}`;
      const { status, body } =
        failure?.request === request ? failure : { status: 200, body: answers.get(request) };
      const isStream = status === 200 && request.endsWith('/stream');
      response.writeHead(status, {
        'content-type': isStream
          ? 'text/event-stream'
          : status < 400
            ? 'application/json'
            : 'application/problem+json',
      });
      response.end(isStream ? `data: ${JSON.stringify(body)}\n\n` : JSON.stringify(body));
    });
  });
  afterAll(async () => {
    await service.close();
  });

  async function run(args: string[]): Promise<{ status: number; said: string }> {
    const notes: string[] = [];
    const output = { result: () => undefined, note: (line: string) => notes.push(line) };
    const config = { url: service.origin, key: 'k', isLocal: false, awayMs: 0 };
    return { status: await runSlipway(args, output, () => config), said: notes.at(-1) ?? '' };
  }

  it.each(REQUESTS)('%s', async (request, args) => {
    const failures = DOCUMENTED.get(request) ?? [];
    expect(failures.length).toBeGreaterThan(3);
    failure = null;
    expect((await run(args)).status).toBe(0);
    for (const each of failures) {
      failure = { ...each, request };
      const { status, said } = await run(args);
      const code = jsonText(each.body, 'code');
      const isKey = code === 'unauthorized';
      expect([request, code, status]).toEqual([
        request,
        code,
        isKey || each.status === 403 ? 4 : each.status === 422 ? 2 : 1,
      ]);
      const texts = isKey ? ['does not accept the key: set SLIPWAY_KEY'] : textsOf(each.body);
      expect(texts.filter((text) => !said.includes(text))).toEqual([]);
    }
  });

  it.each(ERROR_CODES)('%s', async (code) => {
    const request = 'GET /api/user/suggested-tasks';
    const detail = `Why it is ${code}.`;
    for (const status of [401, 502]) {
      failure = { request, status, body: { code, status, title: 'A title', detail } };
      const isKey = status === 401 && code === 'unauthorized';
      expect((await run(['tasks'])).said).toContain(isKey ? 'set SLIPWAY_KEY' : `slipway: ${detail}`);
    }
  });
});
