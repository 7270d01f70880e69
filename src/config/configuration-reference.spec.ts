import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { configurationReference, configVariables } from './load-config.js';

const COMMITTED = readFileSync(path.join(import.meta.dirname, '../../docs/configuration.md'), 'utf8');

describe('docs/configuration.md', () => {
  it('is what the code says (npm run docs:configuration writes it)', () => {
    expect(COMMITTED).toBe(configurationReference());
  });

  it('has an entry with the default for every variable', () => {
    const entries = new Map(
      COMMITTED.split('\n### ').map((entry) => [/^`([A-Z_]+)`/.exec(entry)?.[1] ?? '', entry]),
    );
    const wrong = configVariables().filter(
      ({ name, default: value }) => entries.get(name)?.includes(value ?? '') !== true,
    );

    expect(entries.size).toBe(configVariables().length + 1);
    expect(wrong).toEqual([]);
  });

  it('describes every variable in sentences', () => {
    const wrong = configVariables().filter(({ description }) => !/^[A-Z`][^\n]{10,}\.$/.test(description));

    expect(wrong).toEqual([]);
  });

  it('offers a file for what is secret, and for nothing that the support bundle shows', () => {
    expect(configVariables().flatMap(({ name, isSecret }) => (isSecret ? [name] : []))).toEqual([
      'DATABASE_URL',
      'DATABASE_DIRECT_URL',
      'BOOTSTRAP_API_KEY',
      'ENCRYPTION_KEYS',
      'OIDC_CLIENT_SECRET',
      'GITHUB_APP_CLIENT_SECRET',
      'GITLAB_OAUTH_CLIENT_SECRET',
      'BITBUCKET_OAUTH_CLIENT_SECRET',
      'GITHUB_APP_PRIVATE_KEY',
      'ENTERPRISE_SSO_CLIENT_SECRET',
      'DEFAULT_LLM_API_KEY',
      'EGRESS_PROXY_KEY',
      'HTTPS_PROXY',
      'HTTP_PROXY',
      'OTEL_EXPORTER_OTLP_HEADERS',
    ]);
    expect(configVariables().filter(({ isPlain, isSecret }) => isPlain && isSecret)).toEqual([]);
  });
});
