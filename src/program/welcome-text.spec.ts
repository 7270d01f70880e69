import { describe, expect, it } from '@jest/globals';
import { parseConfig } from '../config/load-config.js';
import { farewellText, welcomeText } from './welcome-text.js';

const KEYS = `k:${Buffer.alloc(32).toString('base64')}`;

interface Situation {
  workingDirectory?: string;
  hasKeyFile?: boolean;
  hasConsole?: boolean;
  issueCode?: ((purpose: string) => string) | null;
}

function welcome(variables: Record<string, string>, situation: Situation = {}): string {
  return welcomeText({
    config: parseConfig(variables, true),
    port: 3000,
    workingDirectory: '/',
    hasKeyFile: true,
    hasConsole: false,
    issueCode: null,
    ...situation,
  });
}

describe('welcomeText', () => {
  it('says where everything is, the key once, and three requests, the last of them suggested tasks', () => {
    const text = welcome({ DATA_DIR: '/srv/slipway/.data' }, { workingDirectory: '/srv/slipway' });
    const requests = text.match(/^ {2}curl .*$/gm) ?? [];

    expect(text).toContain('http://127.0.0.1:3000/docs');
    expect(text.match(/^ {2}KEY=\$\(cat \.data\/api-key\)$/gm)).toHaveLength(1);
    expect(text.match(/api-key\b/g)).toHaveLength(1);
    expect(requests).toHaveLength(3);
    expect(requests.every((line) => line.includes('-H "X-Session-API-Key: $KEY"'))).toBe(true);
    expect(requests.at(-1)).toMatch(/\/api\/user\/suggested-tasks$/);
  });

  it('gives the address that clients use, where it is known', () => {
    expect(welcome({ PUBLIC_URL: 'https://slipway.example.com/' })).toContain(
      'https://slipway.example.com/api/user/suggested-tasks',
    );
  });

  it.each([
    ['with a code in it', '127.0.0.1', '#code='],
    ['without a code where others reach the service', '0.0.0.0', '\n'],
  ])('links to the console and the web application, %s', (_how, HOST, end) => {
    const text = welcome(
      { HOST, WEB_APP_FOLDER: '/srv/web' },
      { hasConsole: true, issueCode: (purpose) => `c0de-for-a-${purpose}` },
    );
    const [ofSession, ofKey] =
      end === '\n' ? [end, end] : [`${end}c0de-for-a-session\n`, `${end}c0de-for-a-key\n`];

    expect(text).toContain(`Console    http://localhost:3000/console/${ofSession}`);
    expect(text).toContain(`Web app    http://localhost:3000/${ofKey}`);
  });

  it('has no code where logs may hold it', () => {
    expect(welcome({}, { hasConsole: true })).toContain('Console    http://localhost:3000/console/\n');
  });

  it('leaves room on one screen for the lines before it', () => {
    expect(welcome({ WEB_APP_FOLDER: '/srv/web' }, { hasConsole: true }).split('\n').length).toBeLessThan(18);
  });

  it.each([
    [{ BOOTSTRAP_API_KEY: 'hush-hush-hush-hush' }],
    [{ DATABASE_URL: 'postgres://u:hush@db/x', ENCRYPTION_KEYS: KEYS }],
  ])('names no file and shows no key where none was generated: %#', (variables) => {
    const text = welcome(variables, { hasKeyFile: false });

    expect(text).toContain('KEY=YOUR_KEY');
    expect(text).not.toContain('api-key)');
    expect(text).not.toContain('hush');
  });

  it('quotes a key file that a shell would take apart, and an IPv6 address', () => {
    const text = welcome({ DATA_DIR: "/tmp/it's here", HOST: '::1' }, { workingDirectory: '/tmp' });

    expect(text).toContain(`KEY=$(cat 'it'\\''s here/api-key')`);
    expect(text).toContain('http://[::1]:3000/docs');
  });
});

describe('farewellText', () => {
  it.each([
    [0, /^$/],
    [1, /1 sandbox keeps running.*\n.*slipway sandboxes stop --all/],
    [3, /3 sandboxes keep running.*\n.*slipway sandboxes stop --all/],
  ])('says of %d sandboxes what goes on, and how to end it', (running, expected) => {
    expect(farewellText(running, 'slipway')).toMatch(expected);
  });
});
