import { applyDecorators } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems, type DocumentedInvalidInput, invalidInput } from '../../common/openapi/problems.js';
import { ApiBodyExamples } from '../../common/openapi/responses.js';
import { customSecretNameProblem, CustomSecretsDto, SecretMessageDto } from '../secrets/secrets.dto.js';
import { SettingsDto, SettingsStoredDto } from './settings.dto.js';
import { StoredSettingsDto } from './stored-settings.dto.js';

const TAKEN = {
  status: 400,
  code: 'conflict',
  detail: 'A secret named DEPLOY_TOKEN exists already.',
  description: 'The name is taken',
  extensions: { message: 'A secret named DEPLOY_TOKEN exists already.' },
} as const;
const UNKNOWN = {
  status: 404,
  detail: 'There is no secret named DEPLOY_TOKEN.',
  description: 'Unknown name',
};

function badName(place: 'body' | 'path'): DocumentedInvalidInput {
  return invalidInput([place, 'name'], 'value_error', customSecretNameProblem('1') ?? '');
}

/** Documents `GET /api/secrets`. */
export function ListSecretsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'load_custom_secrets_names_api_secrets_get',
      summary: 'List custom secrets',
      description: 'Names and descriptions, by name; never a value.',
    }),
    ApiOkResponse({ type: CustomSecretsDto, description: 'The secrets; an empty list when there are none' }),
    ApiProblems(),
  );
}

/** Documents `POST /api/secrets`. */
export function CreateSecretOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'create_custom_secret_api_secrets_post',
      summary: 'Store a custom secret',
      description: "The user's agents get it as an environment variable; no answer ever holds the value.",
    }),
    ApiCreatedResponse({ type: SecretMessageDto, description: 'Stored' }),
    ApiProblems(TAKEN, 413, 415, badName('body')),
  );
}

/** Documents `PUT /api/secrets/{name}`. */
export function UpdateSecretOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'update_custom_secret_api_secrets__name__put',
      summary: 'Change a custom secret',
      description: 'Renames it, describes it anew, and replaces its value if one is given.',
    }),
    ApiOkResponse({ type: SecretMessageDto, description: 'Changed', example: { message: 'Secret changed' } }),
    ApiProblems(TAKEN, UNKNOWN, 413, 415, badName('body')),
  );
}

/** Documents `DELETE /api/secrets/{name}`. */
export function RemoveSecretOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'delete_custom_secret_api_secrets__name__delete',
      summary: 'Remove a custom secret',
      description: 'Its value is gone for good.',
    }),
    ApiOkResponse({ type: SecretMessageDto, description: 'Removed', example: { message: 'Secret removed' } }),
    ApiProblems(UNKNOWN, badName('path')),
  );
}

/** Bodies of `POST /api/settings` that the documents show. */
export const SETTINGS_EXAMPLES = {
  first: {
    summary: 'Language, model and author of commits',
    value: {
      language: 'en',
      agent: 'CodeActAgent',
      llm_model: 'provider/model-1',
      llm_api_key: 'llm-key-example',
      max_iterations: 100,
      confirmation_mode: false,
      git_user_name: 'Ada Lovelace',
      git_user_email: 'ada@example.com',
    },
  },
  clear: {
    summary: 'Clear what was set: null, or blank text where null keeps the stored value',
    value: { max_budget_per_task: null, llm_base_url: '' },
  },
  toolServers: {
    summary: 'Tool servers',
    value: {
      mcp_config: {
        sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: 'mcp-key-example' }],
        stdio_servers: [
          {
            name: 'files',
            command: 'npx',
            args: ['-y', 'files-server'],
            env: { API_TOKEN: 'token-example' },
          },
        ],
        shttp_servers: [],
      },
    },
  },
  tokensAndSecrets: {
    summary: 'A git-provider token and a custom secret along with settings',
    value: {
      language: 'en',
      secrets_store: {
        provider_tokens: { github: { token: 'ghp_exampleExampleExampleExampleExample1' } },
        custom_secrets: {
          DEPLOY_TOKEN: { secret: 'secret-example', description: 'Token of the deployment service' },
        },
      },
    },
  },
};

/** Documents `POST /api/settings`. */
export function StoreSettingsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'store_settings_api_settings_post',
      summary: 'Store settings',
      description:
        'Merges the given members into what is stored: all of the request, or nothing. Members left out keep their values; null clears a member unless its description says otherwise. A changed model is checked with its server by one request of at most 5 seconds; what that does not accept is stored all the same, and named in `warnings`.',
    }),
    ApiBodyExamples(SettingsDto, SETTINGS_EXAMPLES),
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
        ['body', 'max_iterations'],
        'int_parsing',
        'Expected a whole number; this text is not one.',
      ),
    ),
  );
}

/** Documents `GET /api/settings`. */
export function LoadSettingsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'load_settings_api_settings_get',
      summary: 'Show settings',
      description: 'Keys, tokens and secrets are never shown, only that they are set.',
    }),
    ApiOkResponse({ type: StoredSettingsDto, description: 'The settings' }),
    ApiProblems({ status: 404, detail: 'Settings not found', description: 'Nothing was stored yet' }),
  );
}
