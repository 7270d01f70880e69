import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { Text } from '../common/validation/text-fields.js';

/** Custom secrets become environment variables of sandboxes, so their names are variable names. */
const CUSTOM_SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Names are index entries, which PostgreSQL keeps below a third of a page. */
const LONGEST = 255;

/** The same in the words of OpenAPI. */
export const CUSTOM_SECRET_FORM = { pattern: CUSTOM_SECRET_NAME.source, maxLength: LONGEST };

/** The sentence against a text that cannot name a custom secret, or null. */
export function customSecretNameProblem(name: string): string | null {
  if (name.length > LONGEST) {
    return `Expected a name of at most ${LONGEST} characters.`;
  }
  return CUSTOM_SECRET_NAME.test(name)
    ? null
    : 'Expected a name such as API_TOKEN: a letter or underscore, then letters, digits and underscores.';
}

/** Body of `POST /api/secrets`. */
@ApiSchema({ name: 'CreateCustomSecret' })
export class CreateSecretDto {
  @Text({
    required: true,
    description: 'Letters, digits and underscores, not starting with a digit; unique.',
    example: 'DEPLOY_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  })
  name: string;

  @Text({ required: true, secret: true, description: 'The value; may be empty.', example: 'secret-example' })
  value: string;

  @Text({ nullable: true, description: 'What it is for.', example: 'Token of the deployment service' })
  description?: string | null;
}

/** One entry of a `custom_secrets` map. Members it does not list are ignored. */
@ApiSchema({ name: 'CustomSecretValue' })
export class CustomSecretValueDto {
  @Text({ required: true, secret: true, description: 'The value.', example: 'secret-example' })
  secret: string;

  @Text({
    nullable: true,
    description: 'What it is for; absent keeps the stored text, null clears it.',
    example: 'Token of the deployment service',
  })
  description?: string | null;
}

/** Answer to a change of custom secrets. */
@ApiSchema({ name: 'CustomSecretMessage' })
export class SecretMessageDto {
  @ApiProperty({ description: 'What was done.', example: 'Secret stored' })
  message: string;
}

/** Path of `/api/secrets/{name}`. */
export class SecretNameDto {
  @Text({
    required: true,
    description: 'Name of the secret.',
    example: 'DEPLOY_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  })
  name: string;
}

/** Body of `PUT /api/secrets/{name}`. */
@ApiSchema({ name: 'UpdateCustomSecret' })
export class UpdateSecretDto {
  @Text({
    required: true,
    description: 'The name from now on; the present one to keep it.',
    example: 'DEPLOY_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  })
  name: string;

  @Text({
    nullable: true,
    secret: true,
    description: 'A new value; absent or null keeps the stored one.',
    example: 'secret-example',
  })
  value?: string | null;

  @Text({
    nullable: true,
    description: 'What it is for; absent keeps the stored text, null clears it.',
    example: 'Token of the deployment service',
  })
  description?: string | null;
}
