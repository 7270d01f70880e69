import { expect, it } from '@jest/globals';
import { parseConfig } from '../config/load-config.js';
import { OperatorDefaults } from './operator-defaults.js';

it('shares no key of a model that is called inside the sandbox, where a program of the user may listen', () => {
  const keyOf = (model: string): string | null => {
    const config = parseConfig({ DEFAULT_LLM_MODEL: model, DEFAULT_LLM_API_KEY: 'a-key' }, false);
    return new OperatorDefaults(config).layer.llm.api_key;
  };
  expect([keyOf('openai/small'), keyOf('ollama/small')]).toEqual(['a-key', null]);
});
