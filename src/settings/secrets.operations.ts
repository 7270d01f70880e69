import { applyDecorators } from '@nestjs/common';
import { ApiCreatedResponse, ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems } from '../common/openapi/api-problems.decorator.js';
import { CustomSecretsDto } from './dto/custom-secrets.dto.js';
import { SecretMessageDto } from './dto/secret-message.dto.js';

const TAKEN = {
  status: 400,
  code: 'conflict',
  detail: 'A secret named DEPLOY_TOKEN exists already.',
} as const;
const UNKNOWN = {
  status: 404,
  detail: 'There is no secret named DEPLOY_TOKEN.',
  description: 'Unknown name',
};

/** Documents `GET /api/secrets`. */
export function ListSecretsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
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
      summary: 'Store a custom secret',
      description: "The user's agents get it as an environment variable; no answer ever holds the value.",
    }),
    ApiCreatedResponse({ type: SecretMessageDto, description: 'Stored' }),
    ApiProblems(TAKEN, 413, 415, 422),
  );
}

/** Documents `PUT /api/secrets/{name}`. */
export function UpdateSecretOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      summary: 'Change a custom secret',
      description: 'Renames it, describes it anew, and replaces its value if one is given.',
    }),
    ApiOkResponse({ type: SecretMessageDto, description: 'Changed', example: { message: 'Secret changed' } }),
    ApiProblems(TAKEN, UNKNOWN, 413, 415, 422),
  );
}

/** Documents `DELETE /api/secrets/{name}`. */
export function RemoveSecretOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({ summary: 'Remove a custom secret', description: 'Its value is gone for good.' }),
    ApiOkResponse({ type: SecretMessageDto, description: 'Removed', example: { message: 'Secret removed' } }),
    ApiProblems(UNKNOWN, 422),
  );
}
