import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { startPackageRegistries } from '../../fakes/fake-package-registries.js';
import { filesWith } from '../../support/files-with.js';
import { githubApp } from '../../support/github-app.js';
import { hasIsolatedProcesses, OWN_ADDRESS } from '../../support/isolated-processes.js';
import { foundInMemory } from '../../support/process-memory.js';
import { reservedPort } from '../../support/reserved-port.js';
import type { ApiClient, Json } from './support/api-client.js';
import { JourneyWorld, LLM_KEY } from './support/journey-world.js';
import { message, onMessage, shell } from './support/script.js';

/** Sandboxes see no programs but the system's. */
const OF_SYSTEM = ['npm --version', 'python3 -c "import ensurepip, venv"'].every(
  (command) => spawnSync('sh', ['-c', command], { env: { PATH: '/usr/bin:/bin' } }).status === 0,
);
const canRun = process.getuid?.() === 0 && OWN_ADDRESS !== undefined && hasIsolatedProcesses() && OF_SYSTEM;

const REPOSITORY = 'octo/app';
const BRANCH = 'fix/it';
/** As pip itself does, in a tenth of its time. */
const UNINSTALL = 'rm -r .venv/lib/python3*/site-packages/tiny_slipway*';
const SETUP = `python3 -m venv .venv && .venv/bin/pip install tiny-slipway && ${UNINSTALL}\n`;
// Whatever registry and authorities a machine has for its own users.
const CONFIG = 'NPM_CONFIG_GLOBALCONFIG=/dev/null';
const NPM = `${CONFIG} npm install tiny-slipway && node -p "require('tiny-slipway')"`;
const PUBLISH = `mkdir -p /tmp/data && echo '{"name": "data", "version": "1.0.0"}' > /tmp/data/package.json && ${CONFIG} npm publish --//registry.npmjs.org/:_authToken=npm_${'0'.repeat(36)} /tmp/data`;
const PIP = '.venv/bin/pip install --no-cache-dir --retries 0 tiny-slipway';
const COMMIT = `git checkout -qb ${BRANCH} && git add package.json && git commit -qm 'Use tiny-slipway'`;
/** The walk of docs/operations/recipes.md. */
const EGRESS = {
  default: 'deny',
  allow: ['npm'],
  setup: { default: 'deny', allow: ['npm', 'pypi'] },
};

(canRun ? describe : describe.skip)('a sealed sandbox (root, bubblewrap, npm and venv of the system)', () => {
  jest.setTimeout(400_000);
  const host = String(OWN_ADDRESS);
  // One of loopback has port 443 for itself, and nothing leads there but the proxy.
  const address = `127.46.${process.pid % 251}.${1 + (process.ppid % 250)}`;
  const { app, environment } = githubApp();
  let registries: Awaited<ReturnType<typeof startPackageRegistries>>;
  let world: JourneyWorld;
  let user: ApiClient;
  let id: string;
  let sandboxId: string;

  const saidBy = async (words: string): Promise<string> => {
    await user.say(id, words);
    await user.eventOf(id, (event) => JSON.stringify(event).includes(`"${words}"`));
    await user.conversationIn(id, 'finished', 'error');
    return JSON.stringify((await user.eventsOfKind(id, 'ObservationEvent')).at(-2));
  };
  const isDenied =
    (name: string) =>
    (event: Json): boolean =>
      jsonText(event, 'key') === 'EgressDenied' && jsonText(event, 'value', 'host') === name;

  beforeAll(async () => {
    registries = await startPackageRegistries(address);
    const hosts = Object.fromEntries(registries.names.map((name) => [name, address]));
    world = await JourneyWorld.open({ host, githubHost: host, hosts });
    world.hub.app = app;
    const certificate = path.join(path.dirname(world.dataDir), 'authority.pem');
    await writeFile(certificate, registries.certificate);
    await world.git.commit(REPOSITORY, 'main', {
      'package.json': '{"name": "app", "version": "1.0.0"}\n',
      '.openhands/setup.sh': SETUP,
    });
    await world.start({
      ...environment,
      NODE_EXTRA_CA_CERTS: certificate,
      SANDBOX_CREDENTIALS: 'outside',
      SANDBOX_EGRESS_PORT: String(await reservedPort()),
      SANDBOX_NETWORK_ALLOW: `${address}/32`,
    });
    user = await world.createUser();
    await user.post('/api/v1/secrets/git-providers', { provider_tokens: { github: { installation: true } } });
    onMessage('take what you need', (results) =>
      results.length === 0
        ? call('terminal', { command: NPM })
        : results.length === 1
          ? call('terminal', { command: PIP })
          : call('finish', { message: 'That is all.' }),
    );
    onMessage('open the pull request', (results) =>
      results.length === 0
        ? call('terminal', { command: COMMIT })
        : results.length === 1
          ? call('create_pull_request', {
              source_branch: BRANCH,
              title: 'Use tiny-slipway',
              body: 'It is tiny.',
            })
          : call('finish', { message: 'It is open.' }),
    );
    const start = { selected_repository: REPOSITORY, egress: EGRESS, ...message('take what you need') };
    ({ id, sandboxId } = await user.started(start));
    await user.conversationIn(id, 'finished', 'error');
  });

  afterAll(async () => {
    app.issued.forEach((_issued, token) => world.secrets.know('git token', token));
    await world.close();
    await registries.close();
  });

  it('has a package of pip in its setup, one of npm in its work, and none of pip then', async () => {
    const [ofNpm, ofPip] = await user.eventsOfKind(id, 'ObservationEvent');
    expect(JSON.stringify(ofNpm)).toContain('given by npm');
    expect(JSON.stringify(ofPip)).toMatch(/403 Forbidden|ERROR: No matching distribution/);
    expect(registries.asked.filter((each) => each.startsWith('GET files.'))).toHaveLength(1);
    const denied = await user.eventOf(id, isDenied('pypi.org'));
    expect(jsonAt(denied, 'value')).toMatchObject({ port: 443, reason: 'rule', rule: null, phase: 'agent' });
  });

  it('has the package of pip once its owner allows that, and once alone', async () => {
    // In this order: what is asked for first counts last.
    for (const name of ['files.pythonhosted.org', 'pypi.org']) {
      await user.post(`/api/v1/sandboxes/${sandboxId}/egress/allow`, { host: name, once: true });
    }
    const install = `until ${PIP}; do sleep 1; done; .venv/bin/python -c 'import tiny_slipway; print(tiny_slipway.said)'`;
    expect(await saidBy(shell(install))).toContain('given by pip');
    const again = `${UNINSTALL}; ${PIP} || echo not-twice`;
    expect(await saidBy(shell(again))).toContain('not-twice');
  });

  it('tells npm of known holes in its packages, and publishes none with the token of a stranger', async () => {
    expect(await saidBy(shell(`${CONFIG} npm audit && ${PUBLISH}`))).toMatch(/found 0 vulnerabilities.*403/s);
    const ofNpm = registries.asked.filter((each) => each.includes('registry.npmjs.org'));
    expect(ofNpm).toContain('POST registry.npmjs.org/-/npm/v1/security/advisories/bulk');
    expect(ofNpm.filter((each) => each.startsWith('PUT'))).toEqual([]);
    const denied = await user.eventOf(id, isDenied('registry.npmjs.org'));
    expect(jsonAt(denied, 'value')).toMatchObject({ method: 'PUT', reason: 'method' });
  });

  it('pushes by a token of the App for its repository alone, and has the pull request opened', async () => {
    expect(await saidBy('open the pull request')).toContain('Opened pull request');
    expect(await world.git.show(REPOSITORY, BRANCH, '%s')).toBe('Use tiny-slipway');
    const opened = world.hub.changeRequests.find(({ title }) => title === 'Use tiny-slipway');
    expect(opened).toMatchObject({ repository: REPOSITORY, sourceBranch: BRANCH, targetBranch: 'main' });
    const pushes = world.git.requests.filter(({ url }) => url.endsWith('/git-receive-pack'));
    const used = pushes.map(({ credentials }) => app.issued.get(String(credentials).replace(/^.*:/, '')));
    expect(used.map((issued) => issued?.repositories)).toEqual(pushes.map(() => ['app']));
    expect(used).not.toHaveLength(0);
  });

  it('has no credential in its environments, memory and files', async () => {
    const key = environment['GITHUB_APP_PRIVATE_KEY']?.split('\n')[1] ?? '';
    const values = [...app.issued.keys(), LLM_KEY, key];
    const [row] = await world.query(
      'SELECT placeholder FROM sandbox_placeholders WHERE sandbox_id = $1 LIMIT 1',
      [sandboxId],
    );
    const placeholder = String(row?.['placeholder']);
    const pids = world.sandboxProcesses(sandboxId);
    expect(await foundInMemory(pids, [...values, placeholder])).toEqual([placeholder]);
    expect(await filesWith(path.join(world.dataDir, 'sandboxes'), values)).toEqual([]);
  });
});
