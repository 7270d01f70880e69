import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { tmpdir } from 'node:os';
import { jsonText } from '@slipway/common/json-access.js';
import { reservedPort } from '../../support/reserved-port.js';
import { until } from '../../support/until.js';

export const KEYCLOAK_HOME = process.env['KEYCLOAK_HOME'] ?? '';

const ADMIN = { username: 'admin', password: 'of-the-test' };
export const PASSWORD = 'a-password-of-the-test';

/** A Keycloak of its own, in memory, administered over its REST API. */
export class KeycloakServer {
  private constructor(
    readonly url: string,
    private readonly end: () => Promise<void>,
  ) {}

  /** Takes half a minute. @throws Error with what it printed where it ends before that */
  static async start(): Promise<KeycloakServer> {
    const port = await reservedPort();
    const url = `http://127.0.0.1:${port}`;
    // It builds itself in its own folder.
    const home = mkdtempSync(path.join(tmpdir(), 'slipway-keycloak-'));
    mkdirSync(path.join(home, 'data'));
    for (const name of ['bin', 'conf', 'lib', 'providers', 'themes', 'version.txt']) {
      const [source, target] = [path.join(KEYCLOAK_HOME, name), path.join(home, name)];
      if (['lib', 'conf', 'bin'].includes(name)) {
        cpSync(source, target, { recursive: true });
      } else {
        symlinkSync(source, target);
      }
    }
    const child = spawn(
      path.join(home, 'bin/kc.sh'),
      ['start-dev', '--db=dev-mem', `--http-port=${port}`, '--http-host=127.0.0.1'],
      {
        env: {
          ...process.env,
          KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN.username,
          KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
        // kc.sh starts Java as a child of its own.
        detached: true,
      },
    );
    const exited = once(child, 'exit');
    const log: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => log.push(text));
    }
    const end = async (): Promise<void> => {
      if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
        process.kill(-child.pid, 'SIGKILL');
        await exited;
      }
      rmSync(home, { recursive: true, force: true });
    };
    try {
      await until(async () => {
        if (child.exitCode !== null) {
          throw new Error(`Keycloak ended with ${child.exitCode}: ${log.join('').slice(-2000)}`);
        }
        const { ok } = await fetch(`${url}/realms/master`).catch(() => ({ ok: false }));
        return ok;
      });
    } catch (error) {
      await end();
      throw error;
    }
    return new KeycloakServer(url, end);
  }

  issuerOf(realm: string): string {
    return `${this.url}/realms/${realm}`;
  }

  /** @returns the answer, or the id of what was made, by its `Location`; null where it says nothing */
  async admin(method: string, resource: string, body?: unknown): Promise<unknown> {
    const token = await this.token('master', { ...ADMIN, grant_type: 'password', client_id: 'admin-cli' });
    const response = await fetch(`${this.url}/admin/realms${resource}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) {
      throw new Error(`Keycloak: ${method} ${resource}: ${response.status} ${text}`);
    }
    const made = response.headers.get('location')?.split('/').at(-1);
    return text === '' ? (made ?? null) : (JSON.parse(text) as unknown);
  }

  /** An access token of a realm. @throws Error where it gives none */
  async token(realm: string, form: Record<string, string>): Promise<string> {
    const response = await fetch(`${this.issuerOf(realm)}/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams(form),
    });
    const body: unknown = await response.json();
    const token = jsonText(body, 'access_token');
    if (token === null) {
      throw new Error(`Keycloak gave no token: ${JSON.stringify(body)}`);
    }
    return token;
  }

  /** A browser at the form of the sign-in page. @returns the address to which it is sent back */
  async signIn(address: string, username: string): Promise<URL> {
    const page = await fetch(address);
    const cookie = page.headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ');
    const [, action = ''] = /<form[^>]* action="([^"]+)"/.exec(await page.text()) ?? [];
    const answer = await fetch(action.replaceAll('&amp;', '&'), {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie },
      body: new URLSearchParams({ username, password: PASSWORD, credentialId: '' }),
    });
    const location = answer.headers.get('location');
    if (location === null) {
      throw new Error(`Keycloak signs nobody in: ${answer.status}`);
    }
    return new URL(location);
  }

  async stop(): Promise<void> {
    await this.end();
  }
}
