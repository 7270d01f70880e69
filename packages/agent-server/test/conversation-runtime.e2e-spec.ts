import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { SESSION_KEY } from './support/agent-server-client.js';
import { startTestAgentServer, type TestAgentServer } from './support/test-agent-server.js';

const HEADERS = { 'X-Session-API-Key': SESSION_KEY };

describe('commands, files and git below the path of a conversation', () => {
  let server: TestAgentServer;
  let id: string;
  let base: string;
  let folder: string;

  const execute = async (command: string, members: Record<string, unknown> = {}) =>
    await server.client.post(`${base}/bash/execute_bash_command`, { command, ...members });

  beforeAll(async () => {
    server = await startTestAgentServer();
    id = await server.client.start({ workspace: { kind: 'LocalWorkspace', working_dir: 'one' } });
    base = `/api/conversations/${id}`;
    folder = path.join(server.workspace, 'one');
    await mkdir(path.join(folder, 'docs'), { recursive: true });
  });
  afterAll(() => server.stop());

  it('begin in its working directory: commands', async () => {
    expect((await execute('pwd')).body).toMatchObject({ stdout: `${folder}\n`, exit_code: 0 });
    expect((await execute('pwd', { cwd: 'docs' })).body).toMatchObject({ stdout: `${folder}/docs\n` });
    expect((await execute('pwd', { cwd: server.workspace })).body).toMatchObject({
      stdout: `${server.workspace}\n`,
    });
    const { body } = await server.client.post(`${base}/bash/start_bash_command`, { command: 'true' });
    const found = await server.client.get(`${base}/bash/bash_events/${jsonText(body, 'id')}`);
    expect(found).toMatchObject({ kind: 'BashCommand', command: 'true', cwd: folder });
  });

  it('begin in its working directory: files', async () => {
    const form = new FormData();
    form.append('file', new Blob(['text']), 'a.txt');
    const url = `${server.client.url}${base}/file`;
    const sent = await fetch(`${url}/upload?path=docs/a.txt`, {
      method: 'POST',
      headers: HEADERS,
      body: form,
    });
    expect(sent.status).toBe(200);
    expect(await readFile(path.join(folder, 'docs/a.txt'), 'utf8')).toBe('text');
    const download = async (file: string) =>
      await fetch(`${url}/download?path=${encodeURIComponent(file)}`, { headers: HEADERS });
    expect(await (await download('docs/a.txt')).text()).toBe('text');
    expect(await (await download(path.join(folder, 'docs/a.txt'))).text()).toBe('text');
    expect((await download('../../../../../etc/passwd')).status).toBe(403);
  });

  it('begin in its working directory: git', async () => {
    await execute('git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first');
    await writeFile(path.join(folder, 'new.txt'), 'new\n');
    const changes = await server.client.get(`${base}/git/changes?path=.`);
    expect(changes).toEqual(expect.arrayContaining([{ status: 'ADDED', path: 'new.txt' }]));
    expect(await server.client.get(`${base}/git/diff?path=new.txt`)).toMatchObject({ modified: 'new\n' });
    expect(jsonList(await server.client.get(`${base}/git/commits?path=.`), 'commits')).toMatchObject([
      { subject: 'first' },
    ]);
  });

  it.each(['bash/bash_events/search', 'file/download?path=a', 'git/changes?path=.', 'vscode/url'])(
    'are there for a conversation that exists: %s',
    async (route) => {
      const answer = await server.client.send('GET', `/api/conversations/${randomUUID()}/${route}`);
      expect(answer).toEqual({ status: 404, body: { detail: 'Conversation not found' } });
      const open = await fetch(`${server.client.url}${base}/${route}`);
      expect(open.status).toBe(401);
    },
  );
});
