import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { startRequest } from '../../agent-server/test/support/agent-server-client.js';
import { type SandboxClient, sandboxAnswers } from '../../../test/support/sandbox-client.js';
import { type SandboxPromises, type SharedSandbox, startedSandbox } from './sandbox-backend.harness.js';

const PROJECT = '/workspace/project';
const GIT = 'git -c user.name=a -c user.email=a@b';

/** The contract of a backend about the folder that clients of OpenHands assume. */
export function describeProjectFolder(
  shared: () => SharedSandbox,
  { isolated }: Pick<SandboxPromises, 'isolated'>,
): void {
  describe(`the folder ${PROJECT}`, () => {
    const folderOf = async (client: SandboxClient, cwd?: string) =>
      (await client.run('pwd', cwd)).stdout.trimEnd();

    it('is where commands run and conversations work, under one name', async () => {
      const { client } = shared();
      const folder = await folderOf(client);
      expect(await folderOf(client, PROJECT)).toBe(folder);
      expect(await folderOf(client, '.')).toBe(folder);
      // Tools can have it only where folders can be mounted for them.
      expect(folder === PROJECT).toBe(isolated);
      const workingDirOf = async (working_dir: string): Promise<string | null> => {
        const request = startRequest({ conversation_id: randomUUID(), workspace: { working_dir } });
        const info: unknown = await (await client.send('POST', '/api/conversations', request)).json();
        return jsonText(jsonAt(info, 'workspace'), 'working_dir');
      };
      expect(await workingDirOf(PROJECT)).toBe(folder);
      for (const working_dir of [`${PROJECT}/repo`, 'repo', `${folder}/repo`]) {
        expect(await workingDirOf(working_dir)).toBe(`${folder}/repo`);
      }
      expect(await folderOf(client, `${PROJECT}/repo`)).toBe(`${folder}/repo`);
    });

    it.each([`${PROJECT}/a b`, '/workspace', `/tmp/${randomUUID()}`])(
      'receives and sends files in %s',
      async (folder) => {
        const { client } = shared();
        const file = `${folder}/file`;
        expect(await client.download(file)).toBeNull();
        expect(await client.upload(file, 'of the client')).toBe(200);
        expect(await client.download(file)).toBe('of the client');
        if (isolated) {
          const { stdout } = await client.run(`cat '${file}'; echo of a tool > '${file}'`);
          expect(stdout).toBe('of the client');
          expect(await client.download(file)).toBe('of a tool\n');
        }
        expect(await client.upload('/etc/file', 'x')).toBe(403);
        expect(await client.upload(`${PROJECT}/../../etc/file`, 'x')).toBe(403);
        // The folder is the machine's if nothing is isolated; otherwise it may hold files of others.
        await client.run(`rm '${file}'; rmdir '${folder}'`);
      },
    );

    it('has the changes of its repositories', async () => {
      const { client } = shared();
      await client.upload(`${PROJECT}/repo/kept`, 'old');
      const commit = `git init -q && ${GIT} add . && ${GIT} commit -qm first`;
      expect(await client.run(commit, `${PROJECT}/repo`)).toMatchObject({ exitCode: 0 });
      await client.upload(`${PROJECT}/repo/new`, 'text');
      const ask = async (what: string, file: string) =>
        await (await client.send('GET', `/api/git/${what}?path=${PROJECT}/repo${file}&ref=HEAD`)).json();
      expect(await ask('changes', '')).toEqual([{ status: 'ADDED', path: 'new' }]);
      expect(await ask('diff', '/kept')).toEqual({ original: 'old', modified: 'old' });
      const get = async (address: string) => await (await client.send('GET', address)).json();
      const commits = jsonList(await get(`/api/git/commits?path=${PROJECT}/repo`), 'commits');
      expect(commits.map((commit) => jsonText(commit, 'subject'))).toEqual(['first']);
      // The whole folder, as the view of a conversation without a repository asks for it.
      expect(await get(`/api/git/changes?path=${PROJECT}`)).toContainEqual({
        status: 'ADDED',
        path: 'repo/new',
      });
    });

    it('receives the repositories of conversations', async () => {
      const { client } = shared();
      const prepare = async (directory: string, members: object): Promise<unknown> =>
        await (
          await client.send('POST', '/api/git/prepare', {
            directory,
            branch: null,
            username: null,
            password: null,
            identity: { name: 'Ada', email: 'ada@example.com' },
            ...members,
          })
        ).json();
      const made = await prepare(`${PROJECT}/made`, { url: null, new_branch: 'start' });
      expect(made).toMatchObject({ ok: true, branch: 'start' });
      expect(await client.upload(`${PROJECT}/made/file`, 'text')).toBe(200);
      expect(await client.run('git add . && git commit -qm first', `${PROJECT}/made`)).toMatchObject({
        exitCode: 0,
      });
      const { stdout } = await client.run('git log --format=%an/%s start', `${PROJECT}/made`);
      expect(stdout).toBe('Ada/first\n');
    });

    it('stays over a pause', async () => {
      const { harness } = shared();
      const launch = harness.launch();
      const client = await startedSandbox(harness, launch);
      const folder = await folderOf(client);
      await client.upload(`${PROJECT}/repo/a`, 'kept');
      await client.upload('/workspace/b', 'kept too');
      const { backend } = harness;
      await backend.pause(launch.id);
      await backend.resume(launch, new AbortController().signal);
      const resumed = await sandboxAnswers(backend, launch);
      expect(await folderOf(resumed)).toBe(folder);
      expect((await resumed.run('cat a', `${PROJECT}/repo`)).stdout).toBe('kept');
      expect(await resumed.download('/workspace/b')).toBe('kept too');
    });
  });
}
