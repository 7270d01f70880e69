import { z } from 'zod';
import type { PlainObservation } from '@slipway/agent-protocol/events.js';
import { builtInDefinition, builtInTool, type Tool, ToolInputError } from './tool.js';
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';

export const FINISH = 'finish';
const DESCRIPTION =
  'End your work: the task is done, or you cannot go on without the user. Call it alone, as your last call.';
const MESSAGE = 'What was done, how it was checked, what is left; for the user.';

export const finishTool = builtInTool('Finish', {
  name: FINISH,
  description: DESCRIPTION,
  needsConfirmation: false,
  schema: z.object({ message: z.string().describe(MESSAGE) }),
  toAction: ({ message }) => ({ kind: 'FinishAction', message }),
  run: async ({ message }) => finished(message),
});

/** Characters of JSON. */
const MAX_RESULT_LENGTH = 262_144;

/** The client's form; in the log it is the call's `result`. @throws Error when the JSON Schema cannot be used */
export function finishWithResultTool(resultSchema: Record<string, unknown>): Tool {
  const check = jsonSchemaCheck(resultSchema);
  const { $schema: _, $defs, definitions, ...resultRules } = resultSchema;
  const description = `${DESCRIPTION} Give the result in the form of its schema: programs read it.`;
  return {
    name: FINISH,
    description,
    needsConfirmation: false,
    inputSchema: {
      type: 'object',
      properties: { message: { type: 'string', description: MESSAGE }, result: resultRules },
      required: ['message', 'result'],
      // References start at the root, so the definitions must be there.
      ...($defs !== undefined && { $defs }),
      ...(definitions !== undefined && { definitions }),
    },
    repairs: [],
    definition: builtInDefinition('Finish', { name: FINISH, description }),
    prepare: ({ message, result }) => {
      if (typeof message !== 'string') {
        throw new ToolInputError('message: expected a string');
      }
      if (result === undefined) {
        throw new ToolInputError('result: it is missing');
      }
      const problem = check(result);
      if (problem !== null) {
        throw new ToolInputError(`result: ${problem}`);
      }
      if (JSON.stringify(result).length > MAX_RESULT_LENGTH) {
        throw new ToolInputError(`result: expected at most ${MAX_RESULT_LENGTH} characters of JSON`);
      }
      return { action: { kind: 'FinishAction', message }, run: async () => finished(message) };
    },
  };
}

function finished(message: string): PlainObservation {
  return { kind: 'FinishObservation', content: [{ type: 'text', text: message }], is_error: false };
}

const MAX_ERRORS = 5;

/**
 * Compiles a JSON Schema (draft 2020-12); formats and unknown keywords are not checked, and nothing is fetched. The
 * function tells the model what is wrong with a value; null when nothing is.
 * @throws Error with the reason when the schema cannot be used
 */
export function jsonSchemaCheck(jsonSchema: Record<string, unknown>): (value: unknown) => string | null {
  const { $schema: _, ...rules } = jsonSchema;
  const options = { strict: false, validateFormats: false, logger: false, allErrors: true } as const;
  const validate = new Ajv2020(options).compile(rules);
  return (value) =>
    validate(value) ? null : (validate.errors ?? []).slice(0, MAX_ERRORS).map(describe).join('; ');
}

function describe({ instancePath, message = 'is not valid' }: ErrorObject): string {
  return instancePath === '' ? message : `${instancePath} ${message}`;
}
