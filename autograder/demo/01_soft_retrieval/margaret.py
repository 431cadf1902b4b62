"""Everything right, one entry after the other, and printed at every step."""

import torch


# %%
def softmax(scores, dim):
    print("softmax of", tuple(scores.shape), "along", dim)
    rows, weights = scores.movedim(dim, -1), []
    for row in rows.reshape(-1, rows.shape[-1]):
        e = torch.exp(row - max(row))
        weights.append(e / e.sum())
        print(row, "->", weights[-1])
    return torch.stack(weights).view(rows.shape).movedim(-1, dim)


# %%
print(softmax(torch.tensor([[1.0, 2.0], [3.0, 5.0]]), 0))


# %%
def soft_lookup(query, keys, values, temperature=1.0):
    scores = []
    for key in keys:
        scores.append(torch.dot(query, key) / temperature)
        print("score", scores[-1])
    largest = max(scores)
    shares = [torch.exp(score - largest) for score in scores]
    weights = [share / sum(shares) for share in shares]
    output = 0
    for weight, value in zip(weights, values, strict=True):
        output = output + weight * value
        print("so far", output)
    return output, torch.stack(weights)


# %%
def softmax_jacobian(weights):
    J = torch.zeros(len(weights), len(weights))
    for i in range(len(weights)):
        for j in range(len(weights)):
            J[i, j] = weights[i] * (1 - weights[i]) if i == j else -weights[i] * weights[j]
    print(J)
    return J


# %%
def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    predictions = []
    for x in x_query:
        exponents = [-((x - key) ** 2) / (2 * bandwidth**2) for key in x_keys]
        kernels = [torch.exp(exponent - max(exponents)) for exponent in exponents]
        predictions.append(sum(k * y for k, y in zip(kernels, y_keys, strict=True)) / sum(kernels))
        print(x, "->", predictions[-1])
    return torch.stack(predictions)


# %%
def additive_scores(queries, keys, w_q, w_k, v):
    rows = []
    for query in queries:
        row = []
        for key in keys:
            hidden = torch.tanh(query @ w_q + key @ w_k)
            row.append((v * hidden).sum())
        print(row)
        rows.append(torch.stack(row))
    return torch.stack(rows)
