import { applyDecorators } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems } from '../common/openapi/api-problems.decorator.js';
import { invalidInput, type DocumentedInvalidInput } from '../common/openapi/documented-error.js';
import { customSecretNameProblem } from './custom-secret-name.js';
import { CustomSecretsDto } from './dto/custom-secrets.dto.js';
import { SecretMessageDto } from './dto/secret-message.dto.js';

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
