import { expect, it } from '@jest/globals';
import { loadCommandLineConfig } from './command-line-config.js';

it('takes the address of another service without its last slashes', () => {
  Object.assign(process.env, { SLIPWAY_URL: 'https://slipway.example.com/base//', SLIPWAY_KEY: 'slw_key' });
  expect(loadCommandLineConfig()).toEqual({
    url: 'https://slipway.example.com/base',
    key: 'slw_key',
    isLocal: false,
  });
});

it('takes an empty key for none', () => {
  Object.assign(process.env, { SLIPWAY_URL: 'https://slipway.example.com', SLIPWAY_KEY: '' });
  expect(loadCommandLineConfig().key).toBeNull();
});

it.each(['nonsense', 'slipway.example.com', 'localhost:3000', 'https://', 'ftp://slipway.example.com'])(
  'says what is wrong with the address "%s"',
  (address) => {
    process.env['SLIPWAY_URL'] = address;
    expect(() => loadCommandLineConfig()).toThrow('SLIPWAY_URL: must be the address of a service');
  },
);
