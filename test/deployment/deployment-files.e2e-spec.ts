import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { configVariables } from '../../src/config/load-config.js';
import { AGENT_SERVER_COMMAND } from '../../packages/sandboxes/src/container-layout.js';

const VARIABLES = configVariables().map(({ name }) => name);
/** Set by the image itself. */
const OF_THE_IMAGE = ['PORT', 'HOST', 'DATA_DIR'];
/** Read by docker-compose.yml or by Node.js. */
const OF_OTHERS = ['BASE_IMAGE', 'LISTEN', 'NODE_EXTRA_CA_CERTS', 'POSTGRES_IMAGE', 'POSTGRES_PASSWORD'];

describe('deployment files', () => {
  it('.env.example shows exactly the variables that are read', async () => {
    const shown = namesIn(await readFile('.env.example', 'utf8'), /^# ([A-Z_]+)=/gm);

    expect(shown.toSorted()).toEqual([...VARIABLES, ...OF_OTHERS].toSorted());
  });

  it('docker-compose.yml hands on every variable that the image does not set', async () => {
    const handedOn = namesIn(await readFile('docker-compose.yml', 'utf8'), /^ {6}([A-Z_]+):/gm);

    expect(handedOn.filter((name) => VARIABLES.includes(name)).toSorted()).toEqual(
      VARIABLES.filter((name) => !OF_THE_IMAGE.includes(name)).toSorted(),
    );
  });

  it("the sandboxes' image runs the agent server as other images do", async () => {
    const [, entryPoint = ''] =
      /^ENTRYPOINT (\[.*--secrets-stdin.*\])$/m.exec(await readFile('Dockerfile', 'utf8')) ?? [];

    expect(JSON.parse(entryPoint)).toEqual(AGENT_SERVER_COMMAND);
  });
});

function namesIn(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name);
}
