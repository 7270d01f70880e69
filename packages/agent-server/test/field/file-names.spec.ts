import { beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { startSeparateAgentServer, useAgentServer } from '../support/test-agent-server.js';

const run = promisify(execFile);
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

// Names from before UTF-8, or from archives of other systems: git quotes them, so their diff could not be asked for.
describe('names of files', () => {
  const server = useAgentServer(startSeparateAgentServer);
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

  /** What each file of a list of changes had and has. */
  const diffs = async (route: string, query: Record<string, string>): Promise<[string, string, string][]> => {
    const found = jsonList((await get(route, { path: folder, ...query })).body);
    return await Promise.all(
      found.map(async (change) => {
        const name = jsonText(change, 'path') ?? '';
        const { body } = await get('diff', { path: `${folder}/${name}`, ...query });
        return [name, jsonText(body, 'original') ?? '', jsonText(body, 'modified') ?? ''];
      }),
    );
  };
  const texts = (word: string) => NAMES.map((_, index) => `${word} ${index}`);

  it('lead from a list of changes to each diff, in a commit too, and from a deleted file', async () => {
    const changed = await diffs('changes', {});
    expect(changed.map(([name]) => name)).toEqual(
      expect.arrayContaining(['sub/grün ☕.txt', 'back\\351.txt', String.raw`caf\351.txt`]),
    );
    expect(changed.map(([, , modified]) => modified).toSorted()).toEqual(texts('after'));
    expect(changed.map(([, original]) => original).toSorted()).toEqual([
      '',
      ...NAMES.slice(1).map(() => 'before'),
    ]);

    await git('add', '--all');
    await git('commit', '--quiet', '-m', 'test: changes');
    const { stdout } = await run('git', ['rev-parse', 'HEAD'], { cwd: folder });
    const commit = stdout.trim();
    const found = jsonList((await get(`commits/${commit}/changes`, { path: folder })).body);
    const committed = await Promise.all(
      found.map(
        async (change) => await get('diff', { path: `${folder}/${jsonText(change, 'path')}`, commit }),
      ),
    );
    expect(committed.map(({ body }) => jsonText(body, 'modified') ?? '').toSorted()).toEqual(texts('after'));

    await git('rm', '--quiet', '-r', '.');
    const gone = await diffs('changes', { ref: 'HEAD' });
    expect(gone.map(([, original]) => original).toSorted()).toEqual(texts('after'));
    expect(gone.map(([, , modified]) => modified)).toEqual(NAMES.map(() => ''));
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
