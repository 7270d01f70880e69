import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { engineSettings, MemoryEngineHost } from '../../../test/fakes/memory-engine-host.js';
import { toolEnvironment } from '../../tool-view.js';
import { AcpTerminals } from './acp-conversation.js';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.js';

const folder = temporaryFolder();
let terminals: AcpTerminals;

beforeEach(async () => {
  const host = new MemoryEngineHost(engineSettings(folder(), 'http://127.0.0.1:9'));
  terminals = new AcpTerminals({ environment: toolEnvironment({}), wrapper: [] }, host, () => undefined);
});

afterEach(async () => {
  await terminals.close();
});

it('a terminal of an agent waits for no daemon that holds its output when it ends', async () => {
  const daemon = `env -i /usr/bin/setsid -f /bin/bash -c 'echo $$ > ${folder()}/daemon; exec /bin/sleep 1000'`;
  const id = await terminals.create({
    sessionId: 'session',
    command: `echo begun; ${daemon}; until [ -s ${folder()}/daemon ]; do :; done; exit 3`,
  });
  expect(await terminals.wait(id)).toEqual({ exitCode: 3, signal: null });
  process.kill(Number(await readFile(folder('daemon'), 'utf8')));
  expect(terminals.output(id).output).toBe('begun\n');
});
