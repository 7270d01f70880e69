import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { unmaskableReason, unmaskableWarning } from '@slipway/common/secret-mask.js';
import type { InputProblem } from '@slipway/api/errors/problem-error.js';
import { badInput } from '@slipway/api/openapi/api-route.js';
import { OrNull, Shown } from '@slipway/api/openapi/responses.js';
import { PageOf, PageQuery } from '@slipway/api/pagination/page.dto.js';
import { Secret, Text } from '@slipway/api/validation/field-decorators.js';
import { NoOtherMembers } from '@slipway/api/validation/unknown-members.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../organizations/installation-organization.js';
import type { FoundSecret, SecretDescription } from './custom-secret.repository.js';
import { SecretInjectionDto, ShownInjectionDto, toShownInjectionDto } from './secret-injection.dto.js';

/** Custom secrets become environment variables of sandboxes, so their names are variable names. */
const NAME_PATTERN = {
  regex: /^[A-Za-z_][A-Za-z0-9_]*$/,
  expected:
    'Expected a name such as API_TOKEN: a letter or underscore, then letters, digits and underscores.',
};

/** Names are index entries, which PostgreSQL keeps below a third of a page. */
const MAX_NAME = 255;

export const CUSTOM_SECRET_FORM = { pattern: NAME_PATTERN.regex.source, maxLength: MAX_NAME };

export function customSecretNameProblem(name: string): string | null {
  if (name.length > MAX_NAME) {
    return `Expected a name of at most ${MAX_NAME} characters.`;
  }
  return NAME_PATTERN.regex.test(name) ? null : NAME_PATTERN.expected;
}

/** @param input where it is, such as `body.name` */
export function badSecretName(input: string): InputProblem {
  return badInput(input, NAME_PATTERN.expected);
}

export function CustomSecretName(description: string): PropertyDecorator {
  return Text(description, {
    required: true,
    // Not a name that a user has: "Try it out" offers it.
    example: 'EXAMPLE_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  });
}

function Purpose(
  description = 'What it is for; absent keeps the stored text, null clears it.',
): PropertyDecorator {
  return Text(description, { nullable: true, example: 'Token of the deployment service' });
}

@ApiSchema({ name: 'CreateCustomSecret' })
export class CreateSecretDto extends SecretInjectionDto {
  @CustomSecretName('Letters, digits and underscores, not starting with a digit; unique.') name: string;
  @Secret('The value; may be empty.', 'secret-example', { required: true }) value: string;
  @Purpose('What it is for.') description?: string | null;
}

/** One entry of a `custom_secrets` map. Members it does not list are ignored. */
export class CustomSecretValueDto {
  @Secret('The value.', 'secret-example', { required: true }) secret: string;
  @Purpose() description?: string | null;
}

@ApiSchema({ name: 'CustomSecretMessage' })
export class SecretMessageDto {
  @ApiProperty({ description: 'What was done.', example: 'Secret stored' }) message: string;

  @Shown(
    'Why the value will not be hidden in events and outputs, as others are: it is short, a single word, or a path; or why it is in sandboxes in clear although it has hosts. Absent where neither holds.',
    unmaskableWarning('DEPLOY_TOKEN', 'word'),
    { required: false },
  )
  warning?: string;
}

export function secretWarning(name: string, value: string | null | undefined): { warning?: string } {
  const reason = unmaskableReason(value ?? '');
  return value && reason !== null ? { warning: unmaskableWarning(name, reason) } : {};
}

/** @param isOutside whether this installation keeps credentials outside of sandboxes */
export function changeWarning(
  { name, value, hosts }: UpdateSecretDto,
  isOutside: boolean,
): { warning?: string } {
  const { warning: unmaskable } = secretWarning(name, value);
  const inClear = `Hosts have no effect yet: sandboxes here get the value of ${name} in clear, until the operator has credentials stay outside of them (SANDBOX_CREDENTIALS).`;
  const all = [...(unmaskable ? [unmaskable] : []), ...(!isOutside && hosts?.length ? [inClear] : [])];
  return all.length === 0 ? {} : { warning: all.join(' ') };
}

export class SecretNameDto {
  @CustomSecretName('Name of the secret.') name: string;
}

@ApiSchema({ name: 'UpdateCustomSecret' })
export class UpdateSecretDto extends SecretInjectionDto {
  @CustomSecretName('The name from now on; the present one to keep it.') name: string;

  @Secret('A new value; absent or null keeps the stored one.', 'secret-example', { nullable: true })
  value?: string | null;

  @Purpose() description?: string | null;
}

/** What a client believes to limit where the value goes must not be ignored. */
@NoOtherMembers()
@ApiSchema({ name: 'CreateOrganizationSecret' })
export class CreateSharedSecretDto extends CreateSecretDto {}

/** The value stays: who replaces it deletes the secret and makes another. */
@NoOtherMembers()
@ApiSchema({ name: 'DescribeCustomSecret' })
export class DescribeSecretDto extends SecretInjectionDto {
  @Text('The name from now on; absent keeps the present one.', {
    example: 'EXAMPLE_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  })
  name?: string;

  @Purpose() description?: string | null;
}

@ApiSchema({ name: 'CustomSecretDescription' })
export class SecretDescriptionDto extends ShownInjectionDto {
  @ApiProperty({ example: 'DEPLOY_TOKEN' }) name: string;
  @OrNull('Token of the deployment service') description: string | null;
}

export class CustomSecretsDto {
  @ApiProperty({ type: [SecretDescriptionDto] }) custom_secrets: SecretDescriptionDto[];
}

export function toSecretDescriptionDto({
  name,
  description,
  injection,
  phase,
}: SecretDescription): SecretDescriptionDto {
  return { name, description, ...toShownInjectionDto(injection, phase) };
}

export class SecretSearchDto extends PageQuery('Most secrets of a page.') {
  @Text('Part of the name; upper and lower case do not matter.', { example: 'TOKEN' })
  name__contains?: string;
}

export class SecretIdDto {
  @CustomSecretName('Name of the secret.') secret_id: string;
}

const SCOPES = ['user', 'organization'] as const;

@ApiSchema({ name: 'CustomSecretWithoutValue' })
class SecretWithoutValueDto extends SecretDescriptionDto {
  @Shown("Whose it is: the user's, or that of all members of the organization.", 'user', { enum: SCOPES })
  scope: (typeof SCOPES)[number];
}

export function toSecretWithoutValueDto(secret: FoundSecret): SecretWithoutValueDto {
  const { name, description, injection, phase, ownerId } = secret;
  const scope = ownerId === INSTALLATION_ORGANIZATION_ID ? 'organization' : 'user';
  return { name, description, scope, ...toShownInjectionDto(injection, phase) };
}

@ApiSchema({ name: 'CustomSecretPage' })
export class SecretPageDto extends PageOf(SecretWithoutValueDto) {}

export class EditResponseDto extends SecretMessageDto {}
