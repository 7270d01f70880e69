import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../common/openapi/responses.js';
import type { Page } from '../../common/pagination/page.js';
import { Integer } from '../../common/validation/number-fields.js';
import { Text } from '../../common/validation/text-fields.js';
import type { SecretDescription } from './custom-secret.repository.js';
import { CustomSecretName, SecretWarningProperty } from './secrets.dto.js';

const MAX_PAGE = 100;

/** Query of `GET /api/v1/secrets/search`. */
export class SecretSearchDto {
  @Text({ description: 'Part of the name; upper and lower case do not matter.', example: 'TOKEN' })
  name__contains?: string;

  @Text({ description: '`next_page_id` of the page before; empty for the first one.', example: '' })
  page_id?: string;

  @Integer({ minimum: 1, maximum: MAX_PAGE, default: MAX_PAGE, description: 'Most secrets of a page.' })
  limit?: number;
}

/** Path of `/api/v1/secrets/{secret_id}`. */
export class SecretIdDto {
  @CustomSecretName('Name of the secret.')
  secret_id: string;
}

@ApiSchema({ name: 'CustomSecretWithoutValue' })
class SecretWithoutValueDto implements SecretDescription {
  @ApiProperty({ example: 'DEPLOY_TOKEN' })
  name: string;

  @ApiProperty({ type: String, nullable: true, example: 'Token of the deployment service' })
  description: string | null;
}

/** Response of `GET /api/v1/secrets/search`; it never contains values. */
@ApiSchema({ name: 'CustomSecretPage' })
export class SecretPageDto {
  @ApiProperty({ type: [SecretWithoutValueDto] })
  items: SecretWithoutValueDto[];

  @NextPageId()
  next_page_id: string | null;
}

export function toSecretPageDto({ items, nextPageId }: Page<SecretDescription>): SecretPageDto {
  return {
    items: items.map(({ name, description }) => ({ name, description })),
    next_page_id: nextPageId,
  };
}

/** Response to a change of secrets or tokens. */
@ApiSchema({ name: 'EditResponse' })
export class EditResponseDto {
  @ApiProperty({ description: 'What was done.', example: 'Secret created successfully' })
  message: string;

  @SecretWarningProperty()
  warning?: string;
}
