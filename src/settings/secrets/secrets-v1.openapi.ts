import { applyDecorators } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import { AddGitProvidersOperation, UnsetProviderTokensOperation } from './git-tokens.openapi.js';
import { customSecretNameProblem } from './secrets.dto.js';
import { EditResponseDto, SecretPageDto } from './secrets-v1.dto.js';

const UNKNOWN = {
  status: 404,
  detail: 'There is no secret named DEPLOY_TOKEN.',
  description: 'Unknown name',
};
const BAD_NAME = customSecretNameProblem('1') ?? '';

/** Documents `GET /api/v1/secrets/search`. */
export function SearchSecretsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_custom_secrets_api_v1_secrets_search_get',
      summary: 'Search custom secrets',
      description: 'Names and descriptions in pages, by name; never a value.',
    }),
    ApiOkResponse({ type: SecretPageDto, description: 'A page of secrets' }),
    ApiProblems(invalidInput(['query', 'limit'], 'less_than_equal', 'Expected at most 100.')),
  );
}

/** Documents `POST /api/v1/secrets`. */
export function StoreSecretOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'create_custom_secret_api_v1_secrets_post',
      summary: 'Store a custom secret, or replace it',
      description:
        'A secret of that name gets the new value, and keeps its description unless one is given. No answer ever holds the value.',
    }),
    ApiCreatedResponse({ type: EditResponseDto, description: 'Stored' }),
    ApiProblems(413, 415, invalidInput(['body', 'name'], 'value_error', BAD_NAME)),
  );
}

/** Documents `PUT /api/v1/secrets/{secret_id}`. */
export function UpdateSecretV1Operation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'update_custom_secret_api_v1_secrets__secret_id__put',
      summary: 'Rename or describe a custom secret',
      description: 'Replaces its value too if one is given.',
    }),
    ApiOkResponse({
      type: EditResponseDto,
      description: 'Changed',
      example: { message: 'Secret updated successfully' },
    }),
    ApiProblems(
      {
        status: 400,
        code: 'conflict',
        detail: 'A secret named DEPLOY_TOKEN exists already.',
        description: 'The name is taken',
        extensions: { message: 'A secret named DEPLOY_TOKEN exists already.' },
      },
      UNKNOWN,
      413,
      415,
      invalidInput(['body', 'name'], 'value_error', BAD_NAME),
    ),
  );
}

/** Documents `DELETE /api/v1/secrets/{secret_id}`. */
export function DeleteSecretOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'delete_custom_secret_api_v1_secrets__secret_id__delete',
      summary: 'Delete a custom secret',
      description: 'Its value is gone for good.',
    }),
    ApiOkResponse({
      type: EditResponseDto,
      description: 'Removed',
      example: { message: 'Secret deleted successfully' },
    }),
    ApiProblems(UNKNOWN, invalidInput(['path', 'secret_id'], 'value_error', BAD_NAME)),
  );
}

/** Documents `POST /api/v1/secrets/git-providers`. */
export function StoreGitProvidersOperation(): MethodDecorator & ClassDecorator {
  return AddGitProvidersOperation('store_provider_tokens_api_v1_secrets_git_providers_post');
}

/** Documents `DELETE /api/v1/secrets/git-providers`. */
export function UnsetGitProvidersOperation(): MethodDecorator & ClassDecorator {
  return UnsetProviderTokensOperation('unset_provider_tokens_api_v1_secrets_git_providers_delete');
}
