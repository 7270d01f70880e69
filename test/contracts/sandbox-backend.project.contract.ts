import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jsonAt, jsonText } from '../../src/common/json-access.js';
import type { SandboxLaunch } from '../../src/v1/sandboxes/backends/sandbox-backend.js';
import { startRequest } from '../support/agent-server-client.js';
import { type SandboxClient, sandboxAnswers } from '../support/sandbox-client.js';
import type { SandboxBackendHarness, SandboxPromises } from './sandbox-backend.harness.js';

const PROJECT = '/workspace/project';
const GIT = 'git -c user.name=a -c user.email=a@b';

/** The contract of a backend about the folder that clients of OpenHands assume. */
export function describeProjectFolder(
  harness: () => SandboxBackendHarness,
  started: (launch?: SandboxLaunch) => Promise<SandboxClient>,
  { isolated }: Pick<SandboxPromises, 'isolated'>,
): void {
  describe(`the folder ${PROJECT}`, () => {
    const folderOf = async (client: SandboxClient, cwd?: string) =>
      (await client.run('pwd', cwd)).stdout.trimEnd();

    it('is where commands run and conversations work, under one name', async () => {
      const client = await started();
      const folder = await folderOf(client);
      expect(await folderOf(client, PROJECT)).toBe(folder);
      expect(await folderOf(client, '.')).toBe(folder);
      // Tools can have it only where folders can be mounted for them.
      expect(folder === PROJECT).toBe(isolated);
      for (const working_dir of [`${PROJECT}/repo`, 'repo', `${folder}/repo`]) {
        const request = startRequest({ conversation_id: randomUUID(), workspace: { working_dir } });
        const info: unknown = await (await client.send('POST', '/api/conversations', request)).json();
        expect(jsonText(jsonAt(info, 'workspace'), 'working_dir')).toBe(`${folder}/repo`);
      }
      expect(await folderOf(client, `${PROJECT}/repo`)).toBe(`${folder}/repo`);
    });

    it.each([`${PROJECT}/a b`, '/workspace', `/tmp/${randomUUID()}`])(
      'receives and sends files in %s',
      async (folder) => {
        const client = await started();
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
        // Where nothing is isolated it is the machine's.
        await client.run(`rm -r '${folder}'`);
      },
    );

    it('has the changes of its repositories', async () => {
      const client = await started();
      await client.upload(`${PROJECT}/repo/kept`, 'old');
      const commit = `git init -q && ${GIT} add . && ${GIT} commit -qm first`;
      expect(await client.run(commit, `${PROJECT}/repo`)).toMatchObject({ exitCode: 0 });
      await client.upload(`${PROJECT}/repo/new`, 'text');
      const ask = async (what: string, file: string) =>
        await (await client.send('GET', `/api/git/${what}?path=${PROJECT}/repo${file}&ref=HEAD`)).json();
      expect(await ask('changes', '')).toEqual([{ status: 'ADDED', path: 'new' }]);
      expect(await ask('diff', '/kept')).toEqual({ original: 'old', modified: 'old' });
    });

    it('stays over a pause', async () => {
      const launch = harness().launch();
      const client = await started(launch);
      const folder = await folderOf(client);
      await client.upload(`${PROJECT}/repo/a`, 'kept');
      await client.upload('/workspace/b', 'kept too');
      const { backend } = harness();
      await backend.pause(launch.id);
      await backend.resume(launch, new AbortController().signal);
      const resumed = await sandboxAnswers(backend, launch);
      expect(await folderOf(resumed)).toBe(folder);
      expect((await resumed.run('cat a', `${PROJECT}/repo`)).stdout).toBe('kept');
      expect(await resumed.download('/workspace/b')).toBe('kept too');
    });
  });
}
