import { execFileSync, spawnSync } from 'node:child_process';
import type { IncomingMessage } from 'node:http';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { newAuthority } from '../../../packages/egress-proxy/src/new-authority.js';
import { hasIsolatedProcesses, OWN_ADDRESS } from '../../support/isolated-processes.js';
import { namedTlsServer } from '../../support/named-tls-server.js';
import { reservedPort } from '../../support/reserved-port.js';
import { startListening, stopServer } from '../../support/start-listening.js';
import { type ApiClient, text } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';

const canRun = process.getuid?.() === 0 && OWN_ADDRESS !== undefined && hasIsolatedProcesses();
const OPENED = 'opened.example.com';
const PASSED = 'passed.example.com';
const VALUE = 'key-of-clients-0utside-0utside-01';

const GO = `package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	request, _ := http.NewRequest("GET", os.Args[1], nil)
	request.Header.Set("Authorization", os.Args[2])
	response, err := http.DefaultClient.Do(request)
	if err != nil { fmt.Println(err); os.Exit(1) }
	io.Copy(os.Stdout, response.Body)
}
`;
// Java reads no variable and has no credential of a proxy by itself: programs bring both.
const JAVA = `import java.net.*; import java.net.http.*;
public class Client {
  public static void main(String[] args) throws Exception {
    var address = URI.create(args[1]);
    var proxy = URI.create(System.getenv("HTTPS_PROXY"));
    var user = proxy.getUserInfo().split(":", 2);
    var authenticator = new Authenticator() {
      protected PasswordAuthentication getPasswordAuthentication() {
        return new PasswordAuthentication(user[0], user[1].toCharArray());
      }
    };
    var at = new InetSocketAddress(proxy.getHost(), proxy.getPort());
    if (args[0].equals("url")) {
      Authenticator.setDefault(authenticator);
      var connection = address.toURL().openConnection(new Proxy(Proxy.Type.HTTP, at));
      connection.setRequestProperty("Authorization", args[2]);
      System.out.println(new String(connection.getInputStream().readAllBytes()));
    } else {
      // With an authenticator it would drop the header.
      var basic = "Basic " + java.util.Base64.getEncoder().encodeToString(proxy.getUserInfo().getBytes());
      var client = HttpClient.newBuilder().proxy(ProxySelector.of(at)).build();
      var request = HttpRequest.newBuilder(address).header("Authorization", args[2]).header("Proxy-Authorization", basic).build();
      System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
    }
  }
}
`;

/** Basic credentials for CONNECT are off in Java by default. */
const JAVA_FLAG = '-Djdk.http.auth.tunneling.disabledSchemes=';

/** `$1` is an address, `$2` an `Authorization`; `$BUILT` has what is compiled outside. */
const CLIENTS: [name: string, needs: string, command: string][] = [
  ['curl', 'curl --version', 'curl -sS -H "Authorization: $2" "$1"'],
  ['gh', 'gh --version', 'GH_TOKEN=none gh api "$1" -H "Authorization: $2"'],
  [
    'fetch of Node.js',
    'true',
    `'${process.execPath}' -e 'fetch(process.argv[1], {headers: {authorization: process.argv[2]}}).then((a) => a.text()).then(console.log)' "$1" "$2"`,
  ],
  [
    'https of Node.js',
    'true',
    `'${process.execPath}' -e 'require("node:https").get(process.argv[1], {headers: {authorization: process.argv[2]}}, (a) => a.pipe(process.stdout))' "$1" "$2"`,
  ],
  [
    'urllib of Python',
    'python3 --version',
    `python3 -c 'import sys, urllib.request as r; print(r.urlopen(r.Request(sys.argv[1], headers={"Authorization": sys.argv[2]})).read().decode())' "$1" "$2"`,
  ],
  [
    'requests of Python',
    'python3 -c "import requests"',
    `python3 -c 'import sys, requests; print(requests.get(sys.argv[1], headers={"Authorization": sys.argv[2]}).text)' "$1" "$2"`,
  ],
  ['Go', 'go version', '"$BUILT"/client "$1" "$2"'],
  ['HttpURLConnection of Java', 'javac -version', `java ${JAVA_FLAG} -cp "$BUILT" Client url "$1" "$2"`],
  ['HttpClient of Java', 'javac -version', `java ${JAVA_FLAG} -cp "$BUILT" Client client "$1" "$2"`],
];

/** Of the system: sandboxes see no others. */
const SYSTEM_PATH = '/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin';
const isHere = (command: string): boolean =>
  spawnSync('sh', ['-c', command], { env: { PATH: SYSTEM_PATH } }).status === 0;

const MISSING = CLIENTS.filter(([, needs]) => !isHere(needs)).map(([name]) => name);

(canRun ? describe : describe.skip)(
  `through the proxy (root, bubblewrap; not here: ${MISSING.join(', ') || 'none'})`,
  () => {
    const address = `127.47.${process.pid % 251}.${1 + (process.ppid % 250)}`;
    const seen: IncomingMessage[] = [];
    let server: ReturnType<typeof namedTlsServer>;
    let world: JourneyWorld;
    let user: ApiClient;
    let sandboxId: string;
    let built: string;
    let placeholder: string;

    beforeAll(async () => {
      const authority = await newAuthority('clients');
      server = namedTlsServer(authority, (request, response) => {
        seen.push(request);
        response.end(`answered ${request.headers.authorization}`);
      });
      await startListening(server, 443, address);
      const hosts = { [OPENED]: address, [PASSED]: address };
      world = await JourneyWorld.open({ host: String(OWN_ADDRESS), hosts });
      const folder = path.dirname(world.dataDir);
      built = path.join(folder, 'built');
      await mkdir(built);
      await writeFile(path.join(folder, 'authority.pem'), authority.certificate);
      await build(built);
      await world.start({
        NODE_EXTRA_CA_CERTS: path.join(folder, 'authority.pem'),
        SANDBOX_CREDENTIALS: 'outside',
        SANDBOX_EGRESS: JSON.stringify({ allow: [OPENED, PASSED] }),
        SANDBOX_EGRESS_PORT: String(await reservedPort()),
        SANDBOX_NETWORK_ALLOW: `${address}/32`,
        SANDBOX_READ_PATHS: built,
      });
      user = await world.createUser();
      await user.post('/api/v1/secrets', { name: 'CLIENT_KEY', value: VALUE, hosts: [OPENED] });
      ({ sandboxId } = await user.started({}));
      const { body } = await user.send(
        'GET',
        `/api/v1/sandboxes/${sandboxId}/settings/secrets/CLIENT_KEY`,
        undefined,
        {
          'X-Session-API-Key': text(await user.sandbox(sandboxId), 'session_api_key'),
        },
      );
      placeholder = String(body);
    });

    afterAll(async () => {
      await world.close();
      await stopServer(server);
    });

    it.each(CLIENTS.filter(([, needs]) => isHere(needs)))(
      '%s speaks, with a placeholder replaced and without: %s',
      async (_name, _needs, command) => {
        const authorization = `Bearer ${placeholder}`;
        for (const [host, sent] of [
          [OPENED, `Bearer ${VALUE}`],
          [PASSED, authorization],
        ]) {
          const script = `BUILT='${built}'; PATH="$PATH:/usr/local/go/bin"; set -- 'https://${host}/x' '${authorization}'; ${command}`;
          const before = seen.length;
          const { output } = await user.run(sandboxId, script);
          // The agent server masks the placeholder, too.
          expect(output).toContain('answered Bearer <secret-hidden>');
          const received = seen.slice(before).map(({ headers }) => [headers.host, headers.authorization]);
          expect(received).toEqual([[host, sent]]);
        }
      },
    );
  },
);

/** Compilers see more of the machine than sandboxes do. */
async function build(folder: string): Promise<void> {
  await writeFile(path.join(folder, 'client.go'), GO);
  await writeFile(path.join(folder, 'Client.java'), JAVA);
  const env = { ...process.env, PATH: SYSTEM_PATH, CGO_ENABLED: '0' };
  const options = { cwd: folder, env };
  if (isHere('go version')) {
    execFileSync('go', ['build', '-o', 'client', 'client.go'], options);
  }
  if (isHere('javac -version')) {
    execFileSync('javac', ['Client.java'], options);
  }
  await chmod(folder, 0o755);
}
