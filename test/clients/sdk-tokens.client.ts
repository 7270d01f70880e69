import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { promisify } from 'node:util';
import { OutsideHost } from '../support/outside-host.js';
import { startListening, stopServer } from '../support/start-listening.js';
import type { Client } from './client.js';

const run = promisify(execFile);
const TIMEOUT_MS = 60_000;

interface Program {
  spec: string;
  /** Of the form of the vendor's. */
  key: string;
  /** Calls the host at `url` once by `token`. */
  script: string;
  isPython?: true;
  /** What it writes once it has looked at the token; it calls the vendor's own host alone. */
  says?: RegExp;
}

/** In parts, as some watch what is pushed for keys. */
const joined = (...parts: string[]): string => parts.join('');

const PROGRAMS: readonly Program[] = [
  {
    spec: '@anthropic-ai/sdk@1.14.0',
    key: joined('sk-ant-', 'api03-', 'aB3-_'.repeat(18), 'xyz-AA'),
    script: `import Anthropic from '@anthropic-ai/sdk';
      const client = new Anthropic({ apiKey: token, baseURL: url, maxRetries: 0 });
      await client.messages.create({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] });`,
  },
  {
    // httpx reads NO_PROXY before it sends anything.
    spec: 'openai==2.54.0',
    isPython: true,
    key: joined('sk-', 'proj-', 'aB3_-'.repeat(30)),
    script: [
      'from openai import OpenAI',
      'client = OpenAI(api_key=token, base_url=url, max_retries=0)',
      'client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])',
    ].join('\n'),
  },
  {
    spec: '@slack/web-api@8.2.0',
    key: joined('xo', 'xb-123456789012-1234567890123-abcdefghijklmnopqrstuvwx'),
    script: `import { WebClient } from '@slack/web-api';
      await new WebClient(token, { slackApiUrl: url + '/api/', retryConfig: { retries: 0 } }).auth.test();`,
  },
  {
    spec: '@octokit/rest@22.0.1',
    key: joined('gh', 'p_', 'aB3zY9'.repeat(6)),
    script: `import { Octokit } from '@octokit/rest';
      await new Octokit({ auth: token, baseUrl: url }).request('GET /repos/octo/app');`,
  },
  {
    spec: 'stripe@23.1.0',
    key: joined('sk_', 'live_', 'aB3zY9'.repeat(4)),
    // Its usual client keeps connections of its own, which know no proxy.
    script: `import Stripe from 'stripe';
      const { hostname: host, port } = new URL(url);
      const httpClient = Stripe.createFetchHttpClient();
      await new Stripe(token, { host, port, protocol: 'https', maxNetworkRetries: 0, httpClient }).balance.retrieve();`,
  },
  {
    spec: '@stripe/mcp@0.3.3',
    key: joined('rk_', 'live_', 'aB3zY9'.repeat(4)),
    script: `import { spawnSync } from 'node:child_process';
      const args = ['node_modules/@stripe/mcp/dist/index.js', '--api-key=' + token];
      const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', input: '', timeout: 20_000 });
      console.log(stdout + stderr);`,
    says: /running on stdio/,
  },
];

const HEAD = {
  python: 'import sys\nurl, token = sys.argv[1:]',
  node: 'const [url, token] = process.argv.slice(1);',
};

export const sdkTokens: Client = {
  name: 'sdk-tokens',
  what: `programs that look at a token's form, with placeholders (${PROGRAMS.map(({ spec }) => spec).join(', ')})`,
  install: async (cache) => {
    const folders = new Map<string, string>();
    for (const { spec, isPython } of PROGRAMS) {
      const programs = isPython ? cache.pythonPackages('sdk-tokens', [spec]) : cache.npmPrograms(spec);
      folders.set(spec, path.resolve(await programs, '../..'));
    }
    return {
      run: async (_world, steps) => {
        const server = createServer((_request, response) => {
          response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
        });
        const port = await startListening(server);
        for (const program of PROGRAMS) {
          const cwd = folders.get(program.spec) ?? '';
          await steps.step(
            `${program.spec} takes a placeholder`,
            async () => await call(program, cwd, port),
            TIMEOUT_MS,
          );
        }
        await stopServer(server);
      },
    };
  },
};

/** @returns what was seen of it */
async function call({ key, script, says, isPython }: Program, cwd: string, port: number): Promise<string> {
  const home = await mkdtemp(path.join(cwd, 'home-'));
  const host = await OutsideHost.start(`http://127.0.0.1:${port}/`, key, home);
  try {
    const [program, ...options] = isPython
      ? [path.join(cwd, 'venv/bin/python'), '-c', `${HEAD.python}\n${script}`]
      : [process.execPath, '--input-type=module', '--eval', `${HEAD.node}\n${script}`];
    const args = [...options, host.url, host.placeholder];
    const { stdout } = await run(program, args, { cwd, env: host.environment, timeout: TIMEOUT_MS });
    if (says !== undefined) {
      assert.match(stdout, says);
      return 'its check of the form lets the placeholder pass';
    }
    assert.deepEqual(host.received, { withKey: 1, others: [] });
    return `${host.placeholder.slice(0, 8)}… became the key on its way`;
  } finally {
    await host.close();
    await rm(home, { recursive: true, force: true });
  }
}
