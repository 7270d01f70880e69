import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { startSeparateAgentServer, type SeparateAgentServer } from '../support/test-agent-server.js';

const run = promisify(execFile);
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

// Names from before UTF-8, or from archives of other systems: git quotes them, so their diff could not be asked for.
describe('names of files', () => {
  let server: SeparateAgentServer;
  let folder: string;
  const at = (name: Buffer): Buffer => Buffer.concat([Buffer.from(`${folder}/`), name]);
  const git = async (...args: string[]) => {
    const author = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com'];
    await run('git', [...author, ...args], { cwd: folder });
  };
  const get = async (
    route: string,
    query: Record<string, string>,
  ): Promise<{ status: number; body: unknown }> =>
    server.client.send('GET', `/api/git/${route}?${new URLSearchParams(query).toString()}`);

  const NAMES = [
    latin1('caf\u00e9.txt'),
    latin1('d\u00e9j\u00e0/v\u00fc.txt'),
    latin1('sub/back\\slash\u00ff'),
    Buffer.from('sub/grün ☕.txt'),
    Buffer.from('back\\351.txt'),
    Buffer.from('say "hi"\n\t.txt'),
    Buffer.from('-x'),
  ];

  beforeAll(async () => {
    server = await startSeparateAgentServer();
    folder = path.join(server.workspace, 'project');
    await mkdir(folder);
    await git('init', '--quiet', '--initial-branch', 'main');
    await mkdir(at(latin1('d\u00e9j\u00e0')));
    await mkdir(at(Buffer.from('sub')));
    for (const name of NAMES.slice(1)) {
      await writeFile(at(name), 'before');
    }
    await git('add', '--all');
    await git('commit', '--quiet', '-m', 'test: names');
    for (const [index, name] of NAMES.entries()) {
      await writeFile(at(name), `after ${index}`);
    }
  });

  afterAll(async () => {
    await server.stop();
  });

  const changes = async (route: string, query: Record<string, string>): Promise<string[]> =>
    jsonList((await get(route, query)).body).map((change) => jsonText(change, 'path') ?? '');

  it('lead from a list of changes to each diff', async () => {
    const names = await changes('changes', { path: folder });
    expect(names).toHaveLength(NAMES.length);
    const seen: unknown[] = [];
    for (const name of names) {
      const { status, body } = await get('diff', { path: `${folder}/${name}` });
      expect([name, status]).toEqual([name, 200]);
      seen.push(body);
    }
    const expected = NAMES.map((_, index) => ({
      modified: `after ${index}`,
      original: index === 0 ? '' : 'before',
    }));
    expect(seen).toEqual(expect.arrayContaining(expected));
    expect(names).toEqual(
      expect.arrayContaining(['sub/grün ☕.txt', 'back\\351.txt', String.raw`caf\351.txt`]),
    );
  });

  it('lead there in a commit, too, and from a deleted file', async () => {
    await git('add', '--all');
    await git('commit', '--quiet', '-m', 'test: changes');
    const { stdout } = await run('git', ['rev-parse', 'HEAD'], { cwd: folder });
    const commit = stdout.trim();
    const names = await changes(`commits/${commit}/changes`, { path: folder });
    expect(names).toHaveLength(NAMES.length);
    for (const name of names) {
      const { body } = await get('diff', { path: `${folder}/${name}`, commit });
      expect(jsonText(body, 'modified')).toMatch(/^after \d$/);
    }
    await git('rm', '--quiet', '-r', '.');
    const gone = await changes('changes', { path: folder, ref: 'HEAD' });
    expect(gone).toHaveLength(NAMES.length);
    for (const name of gone) {
      const { body } = await get('diff', { path: `${folder}/${name}`, ref: 'HEAD' });
      expect([name, jsonText(body, 'original'), jsonText(body, 'modified')]).toEqual([
        name,
        expect.stringMatching(/^after \d$/),
        null,
      ]);
    }
  });

  it.each([
    String.raw`\056\056/\056\056/\056\056/\056\056/\056\056/\056\056/etc/passwd`,
    String.raw`x\351\057\056\056\057\056\056\057\056\056\057\056\056\057\056\056\057etc/passwd`,
    String.raw`x\351/../../../../../../../../etc/passwd`,
    String.raw`none\351`,
  ])('lead nowhere else: %s', async (name) => {
    const { body } = await get('diff', { path: `${folder}/${name}` });
    expect([jsonText(body, 'modified'), jsonText(body, 'original')]).toEqual([null, null]);
  });
});
