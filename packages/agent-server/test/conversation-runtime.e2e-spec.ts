import { beforeAll, describe, expect, it } from '@jest/globals';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

describe('commands, files and git below the path of a conversation', () => {
  const server = useAgentServer(startTestAgentServer);
  let base: string;
  let folder: string;

  const execute = async (command: string, members: Record<string, unknown> = {}) =>
    await server.client.post(`${base}/bash/execute_bash_command`, { command, ...members });

  beforeAll(async () => {
    const id = await server.client.start({ workspace: { kind: 'LocalWorkspace', working_dir: 'one' } });
    base = `/api/conversations/${id}`;
    folder = path.join(server.workspace, 'one');
    await mkdir(path.join(folder, 'docs'), { recursive: true });
  });

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
    const upload = `${base}/file/upload?path=docs/a.txt`;
    const sent = await server.client.fetch(upload, { method: 'POST', body: form });
    expect(sent.status).toBe(200);
    expect(await readFile(path.join(folder, 'docs/a.txt'), 'utf8')).toBe('text');
    const download = async (file: string) =>
      await server.client.fetch(`${base}/file/download?path=${encodeURIComponent(file)}`);
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
});
