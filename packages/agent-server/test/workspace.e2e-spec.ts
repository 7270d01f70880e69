import { beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { SESSION_KEY } from './support/agent-server-client.js';
import { startSeparateAgentServer, useAgentServer } from './support/test-agent-server.js';
import { until } from '../../../test/support/until.js';

const run = promisify(execFile);

describe('commands, files and git of the agent server', () => {
  const server = useAgentServer(() => startSeparateAgentServer({ maxUploadBytes: 100_000 }));

  async function outputs(commandId: string, query = ''): Promise<unknown[]> {
    const search = `/api/bash/bash_events/search?kind__eq=BashOutput&command_id__eq=${commandId}${query}`;
    return jsonList(await server.client.get(search), 'items');
  }

  async function start(command: string, members: Record<string, unknown> = {}): Promise<string> {
    const { body } = await server.client.post('/api/bash/start_bash_command', { command, ...members });
    return String(jsonText(body, 'id'));
  }

  async function end(commandId: string): Promise<unknown> {
    const last = async () => (await outputs(commandId)).at(-1);
    await until(async () => typeof jsonAt(await last(), 'exit_code') === 'number');
    return await last();
  }

  /** In one piece, or in several on a slow machine. */
  async function whole(commandId: string, stream: string): Promise<string> {
    return (await outputs(commandId)).map((piece) => jsonText(piece, stream) ?? '').join('');
  }

  describe('commands', () => {
    it('start immediately and end with an exit code', async () => {
      const answer = await server.client.post('/api/bash/start_bash_command', {
        command: 'echo a; echo b >&2; exit 3',
      });
      expect(answer).toMatchObject({ status: 200, body: { kind: 'BashCommand', cwd: null, timeout: 300 } });
      const last = await end(String(jsonText(answer.body, 'id')));
      expect(last).toMatchObject({ kind: 'BashOutput', exit_code: 3 });
      const id = String(jsonText(answer.body, 'id'));
      expect([await whole(id, 'stdout'), await whole(id, 'stderr')]).toEqual(['a\n', 'b\n']);
      const members = ['command_id', 'exit_code', 'id', 'kind', 'order', 'stderr', 'stdout', 'timestamp'];
      expect(Object.keys(last ?? {}).toSorted()).toEqual(members);
      expect(await server.client.get(`/api/bash/bash_events/${jsonText(last, 'id')}`)).toEqual(last);
    });

    it('have ids of 32 hexadecimal digits, found with dashes too', async () => {
      const id = await start('true');
      const last = await end(id);
      const ids = [id, jsonText(last, 'id') ?? '', jsonText(last, 'command_id') ?? ''];
      expect(ids.filter((each) => !/^[0-9a-f]{32}$/.test(each))).toEqual([]);
      const dashed = id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-').toUpperCase();
      expect(await outputs(dashed)).toEqual(await outputs(id));
      expect(await server.client.get(`/api/bash/bash_events/${dashed}`)).toMatchObject({ id });
      const stop = await server.client.post(`/api/bash/bash_commands/${dashed}/stop`);
      expect(stop.status).toBe(200);
    });

    it('run in a folder relative to the workspace, and return all of their output', async () => {
      await mkdir(path.join(server.workspace, 'inside'), { recursive: true });
      const { body } = await server.client.post('/api/bash/execute_bash_command', {
        command: 'head -c 150000 /dev/zero | tr "\\0" x; pwd',
        cwd: 'inside',
      });
      expect(jsonAt(body, 'stdout')).toBe(`${'x'.repeat(150_000)}${server.workspace}/inside\n`);
      expect(body).toMatchObject({ exit_code: 0, stderr: null });
    });

    it('have secret variables of their own, which are neither logged nor given to others', async () => {
      const value = 'secret-of-the-setup-0123456789';
      const id = await start('echo "$TOKEN"; echo "$TOKEN" >&2; export MORE=1; env | grep -c ^TOKEN', {
        env: { TOKEN: value },
      });
      await end(id);
      expect(await whole(id, 'stdout')).toBe('<secret-hidden>\n1\n');
      const other = await start('echo "[$TOKEN]"');
      await end(other);
      expect(await whole(other, 'stdout')).toBe('[]\n');
      const all = await server.client.get('/api/bash/bash_events/search');
      expect(JSON.stringify(all)).toContain('secret-hidden');
      expect(JSON.stringify(all)).not.toContain(value);
      const wrong = { command: 'true', env: { 'A B': 'x' } };
      expect(await server.client.post('/api/bash/start_bash_command', wrong)).toMatchObject({ status: 422 });
    });

    it('return only what is new', async () => {
      const id = await start('echo first; until [ -e go ]; do sleep 0.01; done; echo second');
      await until(async () => (await outputs(id)).length === 1);
      await writeFile(path.join(server.workspace, 'go'), '');
      await end(id);
      const all = await outputs(id);
      // Two pieces, or three on a slow machine.
      expect(all.map((event) => jsonAt(event, 'order'))).toEqual([...all.keys()]);
      expect(await outputs(id, '&order__gt=0')).toEqual(all.slice(1));
      expect(await outputs(id, `&order__gt=${all.length - 1}`)).toEqual([]);
    });

    it('are killed after their timeout, and say so', async () => {
      const last = await end(await start('sleep 1000', { timeout: 0.2 }));
      const stderr: unknown = expect.stringContaining('ended after 0.2 seconds');
      expect(last).toMatchObject({ exit_code: -1, stderr });
    });

    it('are stopped one by one', async () => {
      const [stopped, other] = [await start('sleep 1000'), await start('sleep 1000')];
      const stop = async (id: string) =>
        await server.client.post(`/api/bash/bash_commands/${id}/stop`).then(({ status }) => status);
      expect(await stop(stopped)).toBe(200);
      expect(await outputs(stopped)).toMatchObject([{ exit_code: -1 }]);
      expect(await outputs(other)).toEqual([]);
      expect(await stop(stopped)).toBe(200);
      expect(await stop(other)).toBe(200);
      expect(await stop(randomUUID())).toBe(404);
    });

    it('report why they cannot be run', async () => {
      expect(await end(await start('true', { cwd: '/no/such/folder' }))).toMatchObject({
        exit_code: 127,
        stderr: 'The command cannot be run: there is no folder /no/such/folder\n',
      });
    });

    it('see no secret, and print none', async () => {
      await server.client.start({ secrets: { TOKEN: 'token-of-a-conversation' } });
      const id = await start(`env; printf token-of-; printf a-conversation; echo ${SESSION_KEY}`);
      await end(id);
      const stdout = await whole(id, 'stdout');
      expect(stdout).not.toMatch(/OH_|token-of-a-conversation|session-key/);
      expect(stdout).toContain('<secret-hidden><secret-hidden>');
      const command = await server.client.get(`/api/bash/bash_events/${id}`);
      expect(jsonText(command, 'command')).toContain('echo <secret-hidden>');
    });

    it('are killed and closed when the server stops, and can be cleared', async () => {
      const id = await start('sleep 1000');
      await server.restart();
      expect(await end(id)).toMatchObject({ exit_code: -1 });
      const { body } = await server.client.send('DELETE', '/api/bash/bash_events');
      expect(Number(jsonAt(body, 'cleared_count'))).toBeGreaterThan(1);
      expect(await outputs(id)).toEqual([]);
    });
  });

  async function upload(target: string, content: string | Buffer, name = 'file'): Promise<[number, unknown]> {
    const body = new FormData();
    body.append('other', 'ignored');
    body.append(name, new Blob([content]), 'name');
    const response = await server.client.fetch(`/api/file/upload${target}`, { method: 'POST', body });
    return [response.status, await response.json()];
  }

  const download = async (target: string) => await server.client.fetch(`/api/file/download${target}`);

  describe('files', () => {
    it('are uploaded and downloaded in both forms', async () => {
      const bytes = Buffer.from([0, 255, 10, 13, 128]);
      const file = path.join(server.workspace, 'new folder/a b');
      for (const target of [
        `?path=${encodeURIComponent(file)}`,
        `/${encodeURIComponent(file)}`,
        `/${file.split('/').map(encodeURIComponent).join('/')}`,
      ]) {
        expect(await upload(target, bytes)).toEqual([200, { success: true }]);
        expect(await readFile(file)).toEqual(bytes);
        const answer = await download(target);
        expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes);
        expect(answer.headers.get('content-disposition')).toContain('attachment');
        await rm(file);
      }
      expect(await readdir(path.dirname(file))).toEqual([]);
    });

    it('are rejected with the reason', async () => {
      await symlink('/etc', path.join(server.workspace, 'link'));
      await writeFile(path.join(server.workspace, 'empty'), '');
      const at = (name: string) => `?path=${encodeURIComponent(path.join(server.workspace, name))}`;
      expect((await download(at('missing'))).status).toBe(404);
      expect((await download(at('.'))).status).toBe(400);
      expect((await download('?path=relative')).status).toBe(400);
      expect((await download('')).status).toBe(422);
      expect((await download('?path=/etc/passwd')).status).toBe(403);
      expect((await download(at('empty'))).status).toBe(200);
      expect((await upload(at('link/new'), 'x'))[0]).toBe(403);
      expect((await upload(at('x'), 'x', 'wrong-name'))[0]).toBe(422);
      const detail = 'The file is too large.';
      expect(await upload(at('large'), 'x'.repeat(100_001))).toEqual([413, { detail }]);
      expect((await readdir(server.workspace)).filter((name) => /large|upload/.test(name))).toEqual([]);
      const noForm = await server.client.post(`/api/file/upload${at('x')}`, { file: 'x' });
      expect(noForm.status).toBe(422);
    });
  });

  describe('git', () => {
    let repository: string;
    /** Starts one process here, whose copy takes long, for all of a script. */
    const shell = async (folder: string, script: string) =>
      await run('bash', ['-euc', `git() { command git -c user.name=a -c user.email=a@b "$@"; }; ${script}`], {
        cwd: folder,
      });
    const ask = async (what: string, file = '', query = '') =>
      await server.client.send('GET', `/api/git/${what}?path=${path.join(repository, file)}${query}`);

    beforeAll(async () => {
      repository = path.join(server.workspace, 'repository');
      await mkdir(path.join(repository, 'sub'), { recursive: true });
      const files = 'for name in kept changed deleted moved; do printf $name > $name; done';
      await shell(repository, `git init -q -b main; echo ignored > .gitignore; ${files}`);
    });

    it('reports everything before the first commit, and then what changed since', async () => {
      const names = ['.gitignore', 'changed', 'deleted', 'kept', 'moved'];
      const expected = names.map((name) => ({ status: 'ADDED', path: name }));
      expect((await ask('changes')).body).toEqual(expected);
      expect((await ask('changes', '', '&ref=HEAD')).body).toEqual(expected);
      expect((await ask('diff', 'kept')).body).toEqual({ original: '', modified: 'kept' });
      await shell(repository, 'git add .; git commit -qm first');
      expect((await ask('changes')).body).toEqual([]);
      await writeFile(path.join(repository, 'kept'), 'two');
      expect((await ask('changes')).body).toEqual([{ status: 'UPDATED', path: 'kept' }]);
      await writeFile(path.join(repository, 'kept'), 'kept');
    });

    it('reports what a branch did since it left a local default branch', async () => {
      const moves = 'git mv kept elsewhere; git commit -qm moved';
      await shell(repository, `git switch -qc topic; git commit -q --allow-empty -m empty; ${moves}`);
      expect((await ask('changes')).body).toEqual([
        { status: 'ADDED', path: 'elsewhere' },
        { status: 'DELETED', path: 'kept' },
      ]);
    });

    it('reports what changed since the branch left the remote', async () => {
      const second = "git rm -q deleted; git mv moved 'sub/mö ved'; git commit -qm second";
      const left = 'git switch -q main; git update-ref refs/remotes/origin/main HEAD';
      await shell(repository, `${left}; ${second}; printf 'new text' > changed; touch untracked ignored`);
      const expected = [
        { status: 'UPDATED', path: 'changed' },
        { status: 'DELETED', path: 'deleted' },
        { status: 'DELETED', path: 'moved' },
        { status: 'ADDED', path: 'sub/mö ved' },
        { status: 'ADDED', path: 'untracked' },
      ];
      expect((await ask('changes')).body).toEqual(expected);
      const behind = await server.client.get(`/api/git/changes/${repository}`);
      expect(behind).toEqual(expected);
      expect((await ask('changes', '', '&ref=HEAD')).body).toEqual([
        { status: 'UPDATED', path: 'changed' },
        { status: 'ADDED', path: 'untracked' },
      ]);
      expect((await ask('changes', '', '&ref=--help')).status).toBe(400);
    });

    it('lists no file whose content still arrives', async () => {
      const boundary = 'x';
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="late"\r\n\r\n`;
      const end = `\r\n--${boundary}--\r\n`;
      const body = new PassThrough();
      const sent = server.client.fetch(`/api/file/upload?path=${path.join(repository, 'late')}`, {
        method: 'POST',
        headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        body: Readable.toWeb(body),
        duplex: 'half',
      });
      body.write(`${head}some of it`);
      await until(async () => (await readdir(repository)).some((name) => name.startsWith('.upload-')));
      const names = async () =>
        jsonList((await ask('changes', '', '&ref=HEAD')).body).map((change) => jsonAt(change, 'path'));

      expect(await names()).toEqual(['changed', 'untracked']);
      body.end(end);
      expect((await sent).status).toBe(200);
      expect(await names()).toEqual(['changed', 'late', 'untracked']);
      await rm(path.join(repository, 'late'));
    });

    it('shows both sides of a file', async () => {
      expect((await ask('diff', 'changed')).body).toEqual({ original: 'changed', modified: 'new text' });
      expect((await ask('diff', 'deleted')).body).toEqual({ original: 'deleted', modified: '' });
      expect((await ask('diff', 'untracked')).body).toEqual({ original: '', modified: '' });
      expect((await ask('diff', 'nowhere')).status).toBe(400);
      const behind = await server.client.get(`/api/git/diff/${repository}/changed`);
      expect(behind).toMatchObject({ modified: 'new text' });
    });

    it('shows no file as new whose earlier content git cannot read', async () => {
      const broken = path.join(server.workspace, 'broken');
      await mkdir(broken);
      const commit = 'git init -q; seq 20000 > file; git add .; git commit -qm first; echo 1 > file';
      const object = 'object=.git/objects/$(git rev-parse HEAD:file | sed "s,..,&/,")';
      await shell(broken, `${commit}; ${object}; chmod u+w $object; truncate -s 1000 $object`);
      const answer = await server.client.send('GET', `/api/git/diff?path=${broken}/file`);

      expect(answer).toMatchObject({ status: 400, body: { detail: 'git cannot read this repository.' } });
      await rm(broken, { recursive: true });
    });

    it('shows the commits, and what one of them changed', async () => {
      const { body } = await ask('commits', '', '&limit=1');
      const id = { sha: expect.stringMatching(/^[0-9a-f]{40}$/), short_sha: expect.any(String) };
      const timestamp: unknown = expect.stringMatching(/^\d{4}-/);
      const commits = [{ ...id, subject: 'second', author: 'a', timestamp }];
      expect(body).toEqual({ commits, has_more: true });
      const sha = jsonText(jsonList(body, 'commits')[0], 'sha') ?? '';
      expect((await ask(`commits/${sha}/changes`)).body).toEqual([
        { status: 'DELETED', path: 'deleted' },
        { status: 'DELETED', path: 'moved' },
        { status: 'ADDED', path: 'sub/mö ved' },
      ]);
      const diff = (await ask('diff', 'deleted', `&commit=${sha}`)).body;
      expect(diff).toEqual({ original: 'deleted', modified: '' });
      expect((await ask('commits/abcdef/changes')).status).toBe(400);
      expect((await ask('commits/--help/changes')).status).toBe(422);
      expect((await ask('diff', 'deleted', `&commit=${sha}&ref=HEAD`)).status).toBe(400);
    });

    it('reports the changes of other working trees, whose names begin at the workspace', async () => {
      const main = path.join(server.workspace, 'trees');
      const begin =
        'mkdir trees; cd trees; git init -q -b main; echo one > a.txt; git add .; git commit -qm first';
      const grow =
        'for tree in ../two .trees/three ../gone; do git worktree add -q $tree; done; rm -r ../gone';
      const change = 'echo b > b.txt; echo two > ../two/a.txt; echo c > .trees/three/c.txt';
      await shell(server.workspace, `${begin}; ${grow}; ${change}`);
      expect(await server.client.get(`/api/git/changes?path=${main}`)).toEqual([
        { status: 'ADDED', path: '.trees/three/c.txt' },
        { status: 'ADDED', path: 'b.txt' },
        { status: 'UPDATED', path: 'two/a.txt' },
      ]);
      const diff = await server.client.get(`/api/git/diff?path=${main}/two/a.txt`);
      expect(diff).toEqual({ original: 'one\n', modified: 'two\n' });
      expect(await server.client.get(`/api/git/changes?path=${server.workspace}/two`)).toEqual([
        { status: 'UPDATED', path: 'a.txt' },
        { status: 'ADDED', path: 'trees/.trees/three/c.txt' },
        { status: 'ADDED', path: 'trees/b.txt' },
      ]);
    });

    it('reports the changes of repositories in a folder under their names, whatever looks like one', async () => {
      // A worktree, or a submodule, whose repository is elsewhere; and a clone that has just begun.
      const broken = ['broken', 'begun'].map((name) => path.join(server.workspace, name));
      await Promise.all(broken.map(async (folder) => await mkdir(folder)));
      await writeFile(path.join(broken[0] ?? '', '.git'), 'gitdir: /nowhere/.git/worktrees/broken\n');
      await mkdir(path.join(broken[1] ?? '', '.git'));
      const { status, body } = await server.client.send('GET', `/api/git/changes?path=${server.workspace}`);
      await Promise.all(broken.map(async (folder) => await rm(folder, { recursive: true, maxRetries: 10 })));
      expect(status).toBe(200);
      expect(body).toContainEqual({ status: 'UPDATED', path: 'repository/changed' });
    });

    it('reads repositories whose ids are of SHA-256', async () => {
      const folder = path.join(server.workspace, 'sha256');
      await shell(server.workspace, 'git init -q -b main --object-format=sha256 sha256; printf a > sha256/a');
      const asked = async (what: string) => await server.client.send('GET', `/api/git/${what}path=${folder}`);
      const added = [{ status: 'ADDED', path: 'a' }];
      expect((await asked('changes?')).body).toEqual(added);
      await shell(folder, 'git add .; git commit -qm first');
      const sha = jsonText(jsonList((await asked('commits?')).body, 'commits')[0], 'sha') ?? '';
      const changed = await asked(`commits/${sha}/changes?`);
      await rm(folder, { recursive: true, maxRetries: 10 });
      expect(changed.body).toEqual(added);
    });

    it('reports folders that are not a repository, and folders that belong to others', async () => {
      const plain = path.join(server.workspace, 'plain');
      await mkdir(plain);
      expect((await server.client.send('GET', `/api/git/changes?path=${plain}`)).body).toEqual([]);
      const none = { original: null, modified: null };
      expect(await server.client.get(`/api/git/diff?path=${plain}/go`)).toEqual(none);
      const commits = await server.client.get(`/api/git/commits?path=${plain}`);
      expect(commits).toEqual({ commits: [], has_more: false });
      expect((await server.client.send('GET', '/api/git/changes?path=/etc')).status).toBe(403);
    });
  });
});
