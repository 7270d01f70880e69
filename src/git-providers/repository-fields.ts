import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import type { FieldOptions } from '@slipway/api/validation/field.js';
import { Choice, Text } from '@slipway/api/validation/field-decorators.js';
import { PROVIDER_TYPES } from '@slipway/git-providers/git-provider.js';
import {
  BRANCH_FORM,
  isBranchName,
  REPOSITORY_FORM,
  repositorySegments,
} from '@slipway/git-providers/repository-name.js';

export function ProviderName(description: string, presence: FieldOptions): PropertyDecorator {
  const example = 'github';
  return Choice(description, { values: PROVIDER_TYPES, enumName: 'ProviderType', example, ...presence });
}

export function RepositoryName(description: string, options: FieldOptions): PropertyDecorator {
  const rules = { form: REPOSITORY_FORM, rule: repositoryProblem };
  return Text(description, { example: 'octo/app', ...rules, ...options });
}

export function BranchName(description: string, options: FieldOptions): PropertyDecorator {
  return Text(description, { example: 'main', form: BRANCH_FORM, rule: branchProblem, ...options });
}

export function repositoryProblem(name: string): string | null {
  return repositorySegments(name)
    ? null
    : 'Expected the full name of a repository, such as octo/app, not its address.';
}

export function branchProblem(name: string): string | null {
  return isBranchName(name) ? null : 'Expected the name of a branch, such as main or feature/parser.';
}

export function ShownProvider(more: ApiPropertyOptions = {}): PropertyDecorator {
  return ApiProperty(
    Object.assign({ enum: PROVIDER_TYPES, enumName: 'ProviderType', example: 'github' }, more),
  );
}
