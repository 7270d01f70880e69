import { describe, expect, it } from '@jest/globals';
import { MASK } from '@slipway/common/secret-mask.js';
import type { JsonObject } from '@slipway/common/json-access.js';
import { commandServer, remoteServer } from '../../../test/support/sample-tool-servers.js';
import { patchNamedServers } from './named-servers.js';
import type { ToolServer } from './tool-servers.js';

const url = 'https://docs.example.com/mcp';
const BASIC = { strategy: 'basic', username: 'ada', password: 'hush-1' };
const BASIC_HEADER = `Basic ${Buffer.from('ada:hush-1').toString('base64')}`;
const BEARER = { strategy: 'bearer', value: 'hush-2' };

function after(...patches: JsonObject[]): ToolServer[] | null {
  return patches.reduce<ToolServer[] | null>((stored, docs) => {
    const { servers, problems } = patchNamedServers(stored, { docs }, []);
    expect(problems).toEqual([]);
    return servers;
  }, null);
}

describe('patchNamedServers', () => {
  it.each<[string, JsonObject, JsonObject, string | null, Record<string, string>?]>([
    ['a key in place of Basic', { auth: BASIC }, { auth: BEARER }, 'hush-2'],
    ['a bare key in place of Basic', { auth: BASIC }, { api_key: 'hush-2' }, 'hush-2'],
    [
      'a header in place of Basic',
      { auth: BASIC },
      { headers: { authorization: 'Bearer hush-2' } },
      'hush-2',
    ],
    ['none in place of Basic', { auth: BASIC }, { auth: { strategy: 'none' } }, null],
    ['null in place of Basic', { auth: BASIC }, { auth: null }, null],
    ['no header in place of Basic', { auth: BASIC }, { headers: { Authorization: null } }, null],
    ['no headers and a key', { auth: BASIC }, { headers: null, api_key: 'hush-2' }, 'hush-2'],
    ['Basic in place of a key', { auth: BEARER }, { auth: BASIC }, null, { Authorization: BASIC_HEADER }],
    [
      'a header of Basic in place of a key',
      { auth: BEARER },
      { headers: { authorization: BASIC_HEADER } },
      null,
      { authorization: BASIC_HEADER },
    ],
    [
      'a header in other letters',
      { auth: BASIC },
      { headers: { authorization: 'Basic eDp5' } },
      null,
      { authorization: 'Basic eDp5' },
    ],
    [
      'what is shown',
      { auth: BASIC, headers: { 'X-Team': 'hush-3' } },
      { headers: { authorization: MASK, 'X-Team': MASK } },
      null,
      { Authorization: BASIC_HEADER, 'X-Team': 'hush-3' },
    ],
    ['what is shown of a key', { auth: BEARER }, { auth: { ...BEARER, value: MASK } }, 'hush-2'],
    ['what is shown of it as a header', { auth: BEARER }, { headers: { Authorization: MASK } }, 'hush-2'],
    [
      'other headers only',
      { auth: BASIC },
      { headers: { 'X-Team': 'x' } },
      null,
      { Authorization: BASIC_HEADER, 'X-Team': 'x' },
    ],
  ])('signs in one way at a time: %s', (_what, stored, change, apiKey, headers = {}) => {
    const details = Object.keys(headers).length === 0 ? {} : { headers };
    expect(after({ url, ...stored }, change)).toMatchObject([
      remoteServer(url, { name: 'docs', apiKey, details }),
    ]);
  });

  it.each([0, 1.5, 3_601, '60'])('refuses a start that may take %j seconds', (seconds) => {
    const { problems } = patchNamedServers(
      null,
      { mcpServers: { docs: { command: 'npx', start_timeout_seconds: seconds } } },
      ['body'],
    );
    expect(problems).toMatchObject([{ loc: ['body', 'mcpServers', 'docs', 'start_timeout_seconds'] }]);
  });

  it('makes a remote server of a command, and a command of a remote server', () => {
    const command = { command: 'npx', args: ['-y'], env: { TOKEN: 'hush-1' } };

    expect(after(command, { transport: 'http', url })).toEqual([remoteServer(url, { name: 'docs' })]);
    expect(after({ url, auth: BEARER }, { transport: 'stdio', ...command })).toEqual([
      commandServer('docs', { args: ['-y'], env: new Map([['TOKEN', 'hush-1']]) }),
    ]);
  });
});
