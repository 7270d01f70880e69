import { describe, expect, it } from '@jest/globals';
import { parseConfig } from '../config/load-config.js';
import { welcomeText } from './welcome-text.js';

const KEYS = `k:${Buffer.alloc(32).toString('base64')}`;

describe('welcomeText', () => {
  it('says where everything is, with three requests to copy', () => {
    const text = welcomeText(
      parseConfig({ DATA_DIR: '/srv/slipway/.data' }, true),
      3000,
      '/srv/slipway',
      true,
    );

    expect(text).toContain('http://127.0.0.1:3000/docs');
    expect(text.match(/^ {2}curl -H "X-Session-API-Key: \$\(cat \.data\/api-key\)" /gm)).toHaveLength(3);
  });

  it('gives the address that clients use, where it is known', () => {
    const text = welcomeText(
      parseConfig({ PUBLIC_URL: 'https://slipway.example.com/' }, true),
      3000,
      '/',
      true,
    );

    expect(text).toContain('https://slipway.example.com/api/user/suggested-tasks');
  });

  it.each([
    ['with a code in it', '127.0.0.1', 'http://localhost:3000/#code=c0de'],
    ['without a code where others reach the service', '0.0.0.0', 'http://localhost:3000/\n'],
  ])('links to the web application, %s', (_how, HOST, link) => {
    const config = parseConfig({ HOST, WEB_APP_FOLDER: '/srv/web' }, true);

    expect(welcomeText(config, 3000, '/', true, () => 'c0de')).toContain(`Web app      ${link}`);
  });

  it('fits on one screen', () => {
    expect(welcomeText(parseConfig({}, true), 3000, '/', true).split('\n').length).toBeLessThan(24);
  });

  it.each([
    [{ BOOTSTRAP_API_KEY: 'hush-hush-hush-hush' }],
    [{ DATABASE_URL: 'postgres://u:hush@db/x', ENCRYPTION_KEYS: KEYS }],
  ])('names no file and shows no key where none was generated: %#', (variables) => {
    const text = welcomeText(parseConfig(variables, true), 3000, '/', false);

    expect(text).toContain('YOUR_KEY');
    expect(text).not.toContain('api-key)');
    expect(text).not.toContain('hush');
  });

  it('quotes a key file that a shell would take apart, and an IPv6 address', () => {
    const text = welcomeText(
      parseConfig({ DATA_DIR: "/tmp/it's here", HOST: '::1' }, true),
      3000,
      '/tmp',
      true,
    );

    expect(text).toContain(`$(cat 'it'\\''s here/api-key')`);
    expect(text).toContain('http://[::1]:3000/docs');
  });
});
