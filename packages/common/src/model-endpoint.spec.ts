import { describe, expect, it } from '@jest/globals';
import { access, addressToCheck, isOwnServer, modelEndpoint, responsesPlace } from './model-endpoint.js';

const OWN = 'http://llm.local/v1';
const OPENAI = 'https://api.openai.com/v1';
const OPENROUTER = 'https://openrouter.ai/api/v1';
const AZURE = 'https://x.openai.azure.com';
const OWN_DEPLOYMENT = `${AZURE}/openai/deployments/own`;
const DEEPSEEK = 'https://api.deepseek.com';
const RESPONSES = { dialect: 'responses' };
const openai = (model: string, baseUrl: string, query = {}) => ({ api: 'openai', model, baseUrl, query });

describe('modelEndpoint', () => {
  it.each([
    ['openai/gpt-5', null, openai('gpt-5', OPENAI)],
    ['openai/gpt-5', OWN, openai('gpt-5', OWN)],
    ['openai/responses/own', OWN, { ...openai('own', OWN), ...RESPONSES }],
    ['litellm_proxy/responses/org/own', OWN, { ...openai('org/own', OWN), ...RESPONSES }],
    ['responses/own', OWN, { ...openai('own', OWN), ...RESPONSES }],
    ['openai/responses/', OWN, openai('responses/', OWN)],
    ['gpt-5', `${OWN}/responses`, { ...openai('gpt-5', OWN), ...RESPONSES }],
    [
      'azure/own',
      `${AZURE}/openai/responses?v=1`,
      { ...openai('own', `${AZURE}/openai`, { v: '1' }), ...RESPONSES },
    ],
    ['openai/org/model', OWN, openai('org/model', OWN)],
    ['openai/deepseek/x', OWN, openai('deepseek/x', OWN)],
    ['litellm_proxy/claude', OWN, openai('claude', OWN)],
    ['litellm_proxy/anthropic/claude', OWN, openai('anthropic/claude', OWN)],
    ['litellm_proxy/gemini/flash', OWN, openai('gemini/flash', OWN)],
    ['anthropic/claude', null, { api: 'anthropic', model: 'claude', baseUrl: null }],
    ['anthropic/claude', OWN, openai('anthropic/claude', OWN)],
    ['gpt-5', null, openai('gpt-5', OPENAI)],
    ['qwen/qwen3', OWN, openai('qwen/qwen3', OWN)],
    [' gpt-5 ', `${OWN}//`, openai('gpt-5', OWN)],
    ['gpt-5', `${OWN}/chat/completions`, openai('gpt-5', OWN)],
    ['gpt-5', ' ', openai('gpt-5', OPENAI)],
    ['gpt-5', 'https://api.openai.com', openai('gpt-5', OPENAI)],
    ['gpt-5', 'https://eu.api.openai.com/', openai('gpt-5', 'https://eu.api.openai.com/v1')],
    ['gpt-5', 'https://api.openai.com.example', openai('gpt-5', 'https://api.openai.com.example')],
    // Prefixes of providers, with their addresses and at others.
    ['deepseek/deepseek-chat', null, openai('deepseek-chat', `${DEEPSEEK}/v1`)],
    ['deepseek/deepseek-chat', DEEPSEEK, openai('deepseek-chat', `${DEEPSEEK}/v1`)],
    ['deepseek/deepseek-chat', OWN, openai('deepseek-chat', OWN)],
    ['DeepSeek/deepseek-chat', OWN, openai('deepseek-chat', OWN)],
    ['gemini/flash', null, openai('flash', 'https://generativelanguage.googleapis.com/v1beta/openai')],
    ['groq/openai/gpt-oss-120b', null, openai('openai/gpt-oss-120b', 'https://api.groq.com/openai/v1')],
    ['groq/x', 'https://api.groq.com', openai('x', 'https://api.groq.com/openai/v1')],
    ['mistral/large', OWN, openai('large', OWN)],
    ['xai/grok', null, openai('grok', 'https://api.x.ai/v1')],
    ['together_ai/meta/llama', null, openai('meta/llama', 'https://api.together.xyz/v1')],
    ['deepseek-ai/DeepSeek-V3', OWN, openai('deepseek-ai/DeepSeek-V3', OWN)],
    ['ollama/qwen3:8b', 'http://host:11434', openai('qwen3:8b', 'http://host:11434/v1')],
    ['ollama/qwen3:8b', 'http://host:11434/', openai('qwen3:8b', 'http://host:11434/v1')],
    ['ollama/qwen3:8b', 'http://host:11434/v1', openai('qwen3:8b', 'http://host:11434/v1')],
    ['ollama_chat/qwen3:8b', null, openai('qwen3:8b', 'http://127.0.0.1:11434/v1')],
    ['hosted_vllm/org/model', 'http://host:8000', openai('org/model', 'http://host:8000/v1')],
    ['lm_studio/model', 'http://host:1234', openai('model', 'http://host:1234/v1')],
    ['gpt-5', 'http://host:8000', openai('gpt-5', 'http://host:8000')],
    // OpenRouter's own names look like prefixes.
    ['openrouter/anthropic/claude', null, openai('anthropic/claude', OPENROUTER)],
    ['openrouter/anthropic/claude', OPENROUTER, openai('anthropic/claude', OPENROUTER)],
    ['openrouter/auto', null, openai('openrouter/auto', OPENROUTER)],
    ['deepseek/deepseek-chat', OPENROUTER, openai('deepseek/deepseek-chat', OPENROUTER)],
    ['openai/gpt-5', OPENROUTER, openai('openai/gpt-5', OPENROUTER)],
    ['openai/deepseek/deepseek-chat', OPENROUTER, openai('deepseek/deepseek-chat', OPENROUTER)],
    ['anthropic/claude', OPENROUTER, openai('anthropic/claude', OPENROUTER)],
    ['azure/own', `${AZURE}/`, openai('own', `${AZURE}/openai/v1`)],
    ['azure/own', `${OWN_DEPLOYMENT}?v=1`, openai('own', OWN_DEPLOYMENT, { v: '1' })],
    // The query stays behind the path.
    ['gpt-5', `${OWN}?api-version=2025-01-01`, openai('gpt-5', OWN, { 'api-version': '2025-01-01' })],
    ['gpt-5', `${OWN}/chat/completions?a=b%20c&d=e#x`, openai('gpt-5', OWN, { a: 'b c', d: 'e' })],
    ['ollama/x', 'http://host:11434/?a=1', openai('x', 'http://host:11434/v1', { a: '1' })],
  ])('%s at %s', (name, baseUrl, endpoint) => {
    expect(modelEndpoint(name, baseUrl)).toEqual(endpoint);
  });

  it.each([
    ['litellm_proxy/x', 'llm_base_url'],
    ['hosted_vllm/x', 'llm_base_url'],
    ['azure/deployment', 'llm_base_url'],
    ['nobody/flash', 'llm_base_url'],
    ['', 'llm_model'],
  ])('does not know where to find %j', (name, setting) => {
    expect(modelEndpoint(name, null)).toEqual({ problem: expect.stringContaining(setting) });
  });
});

// LLM-Red-Team/kimi-cc#11: gateways that speak Anthropic's form, by their addresses or by the setting.
describe('the form of an address', () => {
  const claude = (model: string, baseUrl: string | null) => ({ api: 'anthropic', model, baseUrl });
  const ANTHROPIC = 'https://api.anthropic.com/v1';
  const GATEWAY = 'https://m.example/anthropic';
  it.each([
    ['anthropic/claude', 'https://api.anthropic.com', null, claude('claude', ANTHROPIC)],
    ['claude', `${ANTHROPIC}/`, null, claude('claude', ANTHROPIC)],
    ['claude', `${ANTHROPIC}/messages`, null, claude('claude', ANTHROPIC)],
    ['zai/glm-5', 'https://z.ai/api/anthropic', null, claude('glm-5', 'https://z.ai/api/anthropic/v1')],
    ['openai/kimi', `${GATEWAY}/v1/`, null, claude('kimi', `${GATEWAY}/v1`)],
    ['claude', null, 'anthropic', claude('claude', null)],
    ['anthropic/claude', OWN, 'anthropic', claude('claude', OWN)],
    ['claude', 'http://llm.local', 'anthropic', claude('claude', OWN)],
    ['kimi', GATEWAY, 'openai', { ...openai('kimi', GATEWAY), dialect: 'chat' }],
    ['gpt-5', OWN, 'openai-responses', { ...openai('gpt-5', OWN), ...RESPONSES }],
    ['responses/gpt-5', OWN, 'openai', { ...openai('gpt-5', OWN), dialect: 'chat' }],
    ['claude', 'https://anthropic.example/v1', null, openai('claude', 'https://anthropic.example/v1')],
    ['zai/glm-5', null, 'anthropic', { problem: expect.stringContaining('llm_base_url') }],
  ] as const)('of %s at %s with %s', (name, baseUrl, api, endpoint) => {
    expect(modelEndpoint(name, baseUrl, api)).toEqual(endpoint);
  });
});

describe('addressToCheck', () => {
  it.each([
    ['openai/gpt-5', null, null],
    ['gpt-5', null, null],
    ['anthropic/claude', null, null],
    ['nobody/x', null, null],
    ['gpt-5', ` ${OWN} `, OWN],
    ['deepseek/x', null, 'https://api.deepseek.com/v1'],
    ['ollama/x', null, 'http://127.0.0.1:11434/v1'],
  ])('%s at %s: %s', (name, baseUrl, address) => {
    expect(addressToCheck(name, baseUrl)).toBe(address);
  });
});

it.each([
  ['ollama/x', true],
  ['lm_studio/x', true],
  ['deepseek/x', false],
  ['gpt-5', false],
])('isOwnServer(%s) is %s', (name, expected) => {
  expect(isOwnServer(name)).toBe(expected);
});

// pydantic/pydantic-ai#5066, block/goose#8236
describe('access', () => {
  const azure = 'https://x.openai.azure.com/openai';
  it.each([
    ['https://llm.example/v1', {}, '1', { 'api-version': '1' }, { Authorization: 'Bearer k' }],
    [`${azure}/v1`, {}, '2024-10-21', {}, { 'api-key': 'k' }],
    [`${azure}/v1`, { 'api-version': '2024-10-21' }, null, {}, { 'api-key': 'k' }],
    [`${azure}/deployments/own`, {}, '2024-10-21', { 'api-version': '2024-10-21' }, { 'api-key': 'k' }],
    [`${azure}/deployments/own`, { 'api-version': '2' }, '1', { 'api-version': '2' }, { 'api-key': 'k' }],
  ])('to %s with %j, version %s', (baseUrl, query, version, asked, key) => {
    expect(access({ baseUrl, query }, 'k', version)).toEqual({ query: asked, key });
  });
});

describe('responsesPlace', () => {
  const azure = 'https://x.openai.azure.com';
  it.each([
    ['https://llm.example/v1', 'gpt', 'https://llm.example/v1'],
    [`${azure}/openai/v1`, 'gpt', `${azure}/openai/v1`],
    [`${azure}/openai`, 'gpt', `${azure}/openai/v1`],
    [`${azure}/openai/deployments/own`, 'own', `${azure}/openai/v1`],
  ])('of %s', (given, model, baseUrl) => {
    expect(responsesPlace({ model: 'gpt', baseUrl: given })).toEqual({ model, baseUrl });
  });
});
