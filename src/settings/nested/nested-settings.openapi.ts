import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import { ApiBodyExamples } from '../../common/openapi/responses.js';
import { SettingsStoredDto } from '../flat/settings.dto.js';
import { NestedSettingsDto, ShownNestedSettingsDto } from './nested-settings.dto.js';

const EXAMPLES = {
  model: {
    summary: 'A model and its key',
    value: {
      language: 'en',
      agent_settings_diff: { llm: { model: 'anthropic/claude-sonnet-4-5', api_key: 'llm-key-example' } },
    },
  },
  toolServer: {
    summary: 'Add one tool server, remove another, keep the rest',
    value: {
      agent_settings_diff: {
        mcp_config: {
          files: { transport: 'stdio', command: 'npx', args: ['-y', 'files-server'] },
          old: null,
        },
      },
    },
  },
  conversation: {
    summary: 'Steps of a run, and confirmations',
    value: { conversation_settings_diff: { max_iterations: 100, confirmation_mode: true } },
  },
};

/** Documents `GET /api/v1/settings`. */
export function LoadNestedSettingsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'load_settings_api_v1_settings_get',
      summary: 'Show settings, nested',
      description:
        'The settings of `/api/settings` in the form of newer clients; the defaults for a user who stored none. Secrets are never shown.',
    }),
    ApiOkResponse({ type: ShownNestedSettingsDto, description: 'The settings' }),
    ApiProblems(),
  );
}

/** Documents `POST /api/v1/settings`. */
export function StoreNestedSettingsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'store_settings_api_v1_settings_post',
      summary: 'Store settings, nested',
      description:
        'Merges the diffs and the members beside them into what is stored: all of the request, or nothing. Members that this service has no use for are kept and shown.',
    }),
    ApiBodyExamples(NestedSettingsDto, EXAMPLES),
    ApiOkResponse({
      type: SettingsStoredDto,
      description: 'Settings stored successfully',
      example: { message: 'Settings stored' },
    }),
    ApiProblems(
      {
        status: 401,
        code: 'invalid_git_token',
        detail: 'Invalid token. Please make sure it is a valid github token.',
        description: 'No valid API key, or a token that its provider rejects',
      },
      413,
      415,
      invalidInput(
        ['body', 'agent_settings'],
        'value_error',
        'Expected the changes alone: send them as agent_settings_diff.',
      ),
    ),
  );
}

const SCHEMA = {
  type: 'object',
  properties: { model_name: { type: 'string' }, sections: { type: 'array', items: { type: 'object' } } },
  required: ['model_name', 'sections'],
} as const;

function schemaOperation(
  operationId: string,
  summary: string,
  modelName: string,
): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId,
      summary,
      description: 'Sections of fields, from which clients build forms.',
    }),
    ApiOkResponse({
      schema: { ...SCHEMA, properties: { ...SCHEMA.properties }, required: [...SCHEMA.required] },
      description: 'The schema',
      example: { model_name: modelName, sections: [] },
    }),
    ApiProblems(),
  );
}

/** Documents `GET /api/v1/settings/agent-schema`. */
export function AgentSchemaOperation(): MethodDecorator & ClassDecorator {
  return schemaOperation(
    'load_settings_schema_api_v1_settings_agent_schema_get',
    'Describe agent settings',
    'AgentSettings',
  );
}

/** Documents `GET /api/v1/settings/conversation-schema`. */
export function ConversationSchemaOperation(): MethodDecorator & ClassDecorator {
  return schemaOperation(
    'load_conversation_settings_schema_api_v1_settings_conversation_schema_get',
    'Describe conversation settings',
    'ConversationSettings',
  );
}
